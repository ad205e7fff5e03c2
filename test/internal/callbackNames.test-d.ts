import type { OutputInterface, streamText, ToolSet } from "ai"
import { describe, expectTypeOf, it } from "vitest"
import type { DecisionName, NotificationName } from "../../src/ai/callbackTypes.ts"
import type { GenerateTextSdkOptions } from "../../src/ai/callTypes.ts"

type GenerateOptions = GenerateTextSdkOptions<ToolSet, { tenant: number }, OutputInterface>
type StreamOptions = Parameters<typeof streamText<ToolSet, { tenant: number }, OutputInterface>>[0]
type Functions<Sdk> = {
  [K in keyof Sdk]-?: [Extract<Sdk[K], (...args: never) => unknown>] extends [never] ? never : K
}[keyof Sdk]

describe("the names of callback options", () => {
  it("are all known, as one kind or the other", () => {
    expectTypeOf<Exclude<Functions<GenerateOptions>, NotificationName | DecisionName>>().toEqualTypeOf<never>()
    // a transformation of the AI SDK is made at once
    expectTypeOf<Exclude<Functions<StreamOptions>, NotificationName | DecisionName>>()
      .toEqualTypeOf<"experimental_transform">()
    expectTypeOf<Exclude<NotificationName | DecisionName, keyof StreamOptions>>().toEqualTypeOf<never>()
  })
})
