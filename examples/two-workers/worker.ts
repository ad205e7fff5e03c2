/**
 * A worker: nothing but layers. Start as many as there is work for.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { EffectSettings } from "chamvi-effect"
import { ClusterEngine } from "chamvi-effect/ClusterEngine"
import { Config, Layer, Logger } from "effect"
import { FetchHttpClient } from "effect/http"
import { clerk } from "./clerk.ts"

const Worker = clerk.layer.pipe(
  Layer.provide(ClusterEngine.layerConfig({
    url: Config.Redacted("DATABASE_URL"),
    schema: Config.String("SCHEMA"),
    // much shorter than a production would have it, so that the example does not take long
    takeover: Config.succeed("3 seconds"),
    pollInterval: Config.succeed("200 millis")
  })),
  Layer.provide([EffectSettings.layer({ lease: "3 seconds" }), FetchHttpClient.layer, Logger.layer([])])
)

Layer.launch(Worker).pipe(NodeRuntime.runMain)
