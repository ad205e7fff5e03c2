/**
 * The elements of a list that is generated, decoded one by one as they are complete.
 */
import type { jsonSchema } from "@ai-sdk/provider-utils"

/** Decodes what the streams of `make` carry: the AI SDK has checked each of them with a schema of the same decoder. */
export const decodedElements = <A>(
  make: () => TransformStream<never, unknown> | undefined,
  { validate }: ReturnType<typeof jsonSchema<A>>
) =>
() => {
  const elements = make()
  return elements === undefined || validate === undefined ? elements : {
    writable: elements.writable,
    readable: elements.readable.pipeThrough(
      new TransformStream<unknown, A>({
        async transform(element, controller) {
          const decoded = await validate(element)
          if (decoded.success) controller.enqueue(decoded.value)
          else controller.error(decoded.error)
        }
      })
    )
  }
}
