/**
 * The engines of workers, and of the harness that watches them.
 */
import type { EffectStore, Engine } from "chamvi-effect"
import { ClusterEngine } from "chamvi-effect/ClusterEngine"
import { SqliteEngine } from "chamvi-effect/SqliteEngine"
import { type Layer, Redacted } from "effect"
import type { Orders } from "./protocol.ts"

type AnyEngine = Layer.Layer<Engine | EffectStore, unknown>

const cluster = ({ schema, url }: { readonly url: string; readonly schema: string }) => ({
  url: Redacted.make(url),
  schema,
  pollInterval: "500 millis"
} as const)

/** The engine of a worker. */
export const engineOf = ({ concurrency, drain, engine, takeover }: Orders): AnyEngine =>
  engine._tag === "Cluster"
    ? ClusterEngine.layer({ ...cluster(engine), concurrency, drain, takeover })
    : SqliteEngine.layer({ filename: engine.filename, concurrency, drain })

/** The engine of the harness. That on SQLite can be had only when the workers are gone. */
export const watcherOf = ({ engine }: Orders): AnyEngine =>
  engine._tag === "Cluster"
    ? ClusterEngine.layerClient(cluster(engine))
    : SqliteEngine.layer({ filename: engine.filename })
