/**
 * What a run fails with where nobody can approve what it is about to do.
 *
 * @since 0.1.0
 */
import { Schema } from "effect"
import { abbreviate } from "../internal/abbreviate.ts"

const id = <Name extends string>(name: Name): `chamvi-effect/${Name}` => `chamvi-effect/${name}`

const ofCall = {
  step: Schema.Int,
  toolCallId: Schema.String,
  toolName: Schema.String
}

const shown = ({ step, toolCallId, toolName }: Schema.Struct.Type<typeof ofCall>): string =>
  `Call "${abbreviate(toolCallId)}" of tool "${abbreviate(toolName)}" in step ${step}`

/**
 * A call was decided on, or asked about, with another input or as one of another tool than it has now. It is not executed, and the
 * run fails with this.
 *
 * @category errors
 * @since 0.1.0
 */
export class ApprovedInputChangedError
  extends Schema.TaggedError<ApprovedInputChangedError>(id("ApprovedInputChangedError"))(
    "ApprovedInputChangedError",
    ofCall
  )
{
  override get message(): string {
    return `${
      shown(this)
    } was approved with another input, or was asked about with one, than it has now, and was not executed. `
      + `This version of the agent reads the input that the model wrote differently: the tool's inputSchema does, or what refines `
      + `it. Let it read the same and retry the run, deny the call if nobody has answered yet and retry, or start a new run.`
  }
}

/**
 * A rule wants a person's answer about a call that the model's provider executes. A run cannot hold such a call back, and fails
 * with this.
 *
 * @category errors
 * @since 0.1.0
 */
export class ProviderCallApprovalError
  extends Schema.TaggedError<ProviderCallApprovalError>(id("ProviderCallApprovalError"))(
    "ProviderCallApprovalError",
    ofCall
  )
{
  override get message(): string {
    return `${
      shown(this)
    } is executed by the model's provider, and needs a person's approval. Runs do not support approvals `
      + `of such calls: give the tool no rule that answers user-approval, or a tool of your own in its place.`
  }
}
