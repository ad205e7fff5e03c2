/**
 * What a call fails with that has no model to call.
 */
import { InvalidArgumentError } from "ai"
import { AiError } from "../AiError.ts"

export const noModel = (): AiError =>
  AiError.from(
    new InvalidArgumentError({
      parameter: "model",
      value: undefined,
      message: "The call names no model, and the Ai service has no default model"
    })
  )
