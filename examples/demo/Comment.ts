/**
 * What the tracker and its clients talk about.
 */
import { Schema } from "effect"

export class Comment extends Schema.Class<Comment>("Comment")({
  id: Schema.Int,
  author: Schema.String,
  body: Schema.String
}) {}
