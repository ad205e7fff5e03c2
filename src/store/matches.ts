import type { EffectRecord } from "../EffectRecord.ts"
import type { ListFilter } from "./IEffectStore.ts"

/** Whether the filter lets a row through. */
export const matches = (filter: ListFilter) => (record: EffectRecord): boolean =>
  (filter.runId === undefined || record.runId === filter.runId)
  && (filter.tool === undefined || record.tool === filter.tool)
  && (filter.status === undefined || record.status === filter.status)
  && (filter.doubt === undefined || record.doubt === filter.doubt)
  && (filter.updatedSince === undefined || record.updatedAt >= filter.updatedSince)
  && (filter.updatedBefore === undefined || record.updatedAt < filter.updatedBefore)
