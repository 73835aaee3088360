/** Why a history was not made shorter. */
import * as Schema from "effect/Schema"

/**
 * A compaction failed; the history is unchanged.
 *
 * @since 0.1.0
 * @category errors
 */
export class CompactionFailed extends Schema.TaggedError<CompactionFailed>("assent/conversation/CompactionFailed")(
  "CompactionFailed",
  { message: Schema.String }
) {}
