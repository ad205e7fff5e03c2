/**
 * What a test of a program, or of a store of its own, needs.
 *
 * @since 0.1.0
 */
export { type Law, type Laws, LawViolation, StoreClock } from "./law.ts"
export {
  type FaultKind,
  type FaultOptions,
  FaultyStore,
  type FaultyOperation,
  type FaultyStoreOptions,
  type HappenedFault,
  type PlannedFault
} from "./FaultyStore.ts"
export * from "./CrashLab.ts"
export * as ScriptedModel from "./ScriptedModel.ts"
export { storeLaws } from "./StoreLaws.ts"
export { storeModel, storeModelInRealTime, type StoreModelOptions } from "./StoreModel.ts"
