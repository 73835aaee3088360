/**
 * Settings of compaction: when a history is made shorter, how, and what must stay; and their form in a file.
 *
 * ```yaml
 * gc: { type: hybrid, threshold_percent: 80, target_percent: 60, preserve_recent_turns: 5 }
 * ```
 *
 * Percents are of the model's context window. In a continuous configuration (`pressure_percent` 0 or null) every turn
 * that ends above the target is followed by a compaction, and the threshold is ignored.
 *
 * @since 0.1.0
 */
import * as Inspectable from "effect/Inspectable"
import type * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"

/**
 * The ways to make a history shorter.
 *
 * @since 0.1.0
 * @category constants
 */
export const strategies = ["truncate", "summarize", "hybrid", "budget"] as const
/**
 * How a history is made shorter.
 *
 * @since 0.1.0
 * @category models
 */
export type StrategyName = (typeof strategies)[number]

/**
 * When a history is made shorter, how, and to what share of the model's context.
 *
 * @since 0.1.0
 * @category models
 */
export interface CompactionConfig {
  readonly type: StrategyName
  /** A history this long, or longer, is compacted. Percent. */
  readonly thresholdPercent: number
  /** Compaction stops once the history is no longer than this. Percent. */
  readonly targetPercent: number
  /** From here on even turns worth keeping may go (`budget`). Percent; 0 is continuous. */
  readonly pressurePercent: number
  /** How many of the latest turns stay; where they are too long alone, what was said in them. */
  readonly preserveRecentTurns: number
  /** Notify people of a compaction. */
  readonly notifyOnGc: boolean
  /** How many turns before the recent ones go into the summary (`hybrid`). */
  readonly summarizeMiddleTurns: number
  /** A history with this many turns is compacted, whatever its length. */
  readonly maxTurns: number | undefined
  /** Check after each turn. */
  readonly autoTrigger: boolean
  /** Check before each model call. */
  readonly checkBeforeSend: boolean
  /** Turns that always stay, counted from 0 at the start of the session. */
  readonly pinnedTurnIndices: ReadonlyArray<number>
}

// A union reports one problem per member; one sentence is enough.
const expecting = (what: string) => ({
  message: (issue: ParseResult.ParseIssue) => ({
    message: `${what} is expected, not ${Inspectable.toStringUnknown(issue.actual, 0)}`,
    override: true
  })
})

const Percent = Schema.Number.pipe(Schema.between(0, 100))

// Exact, so that a wrong value is one problem and not also "expected undefined".
const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

/**
 * The settings in a file. Every field is optional; the reader refuses unknown fields.
 *
 * @since 0.1.0
 * @category schemas
 */
export const CompactionFile = Schema.Struct({
  type: optional(Schema.Literal(...strategies).annotations(expecting(`one of ${strategies.join(", ")}`))),
  threshold_percent: optional(Percent),
  target_percent: optional(Percent),
  pressure_percent: optional(Schema.NullOr(Percent).annotations(expecting("null or a number from 0 to 100"))),
  preserve_recent_turns: optional(Schema.NonNegativeInt),
  notify_on_gc: optional(Schema.Boolean),
  summarize_middle_turns: optional(Schema.NonNegativeInt),
  max_turns: optional(
    Schema.NullOr(Schema.Int.pipe(Schema.positive())).annotations(expecting("null or a whole number from 1"))
  ),
  auto_trigger: optional(Schema.Boolean),
  check_before_send: optional(Schema.Boolean),
  pinned_turn_indices: optional(Schema.Array(Schema.NonNegativeInt))
}).pipe(
  Schema.filter((file) => {
    const { targetPercent, thresholdPercent } = fromFile(file)
    if (isContinuous(fromFile(file)) || targetPercent <= thresholdPercent) return undefined
    const message = `a target of ${targetPercent} is above the threshold of ${thresholdPercent}: nothing would ever be removed`
    return [{ path: ["target_percent"], message }]
  })
)
export type CompactionFile = typeof CompactionFile.Type

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * The settings where a program or a file gives none.
 *
 * @since 0.1.0
 * @category constants
 */
export const defaults: CompactionConfig = {
  type: "truncate",
  thresholdPercent: 80,
  targetPercent: 60,
  pressurePercent: 90,
  preserveRecentTurns: 5,
  notifyOnGc: true,
  summarizeMiddleTurns: 10,
  maxTurns: undefined,
  autoTrigger: true,
  checkBeforeSend: true,
  pinnedTurnIndices: []
}

/**
 * A file's settings completed with the defaults. An absent target is never above the threshold. Only a
 * `pressure_percent` that is written as null or 0 makes a continuous configuration; an absent one is the default.
 *
 * @since 0.1.0
 * @category constructors
 */
export function fromFile(file: CompactionFile): CompactionConfig {
  const thresholdPercent = file.threshold_percent ?? defaults.thresholdPercent
  return {
    type: file.type ?? defaults.type,
    thresholdPercent,
    targetPercent: file.target_percent ?? Math.min(defaults.targetPercent, thresholdPercent),
    pressurePercent: file.pressure_percent === undefined ? defaults.pressurePercent : (file.pressure_percent ?? 0),
    preserveRecentTurns: file.preserve_recent_turns ?? defaults.preserveRecentTurns,
    notifyOnGc: file.notify_on_gc ?? defaults.notifyOnGc,
    summarizeMiddleTurns: file.summarize_middle_turns ?? defaults.summarizeMiddleTurns,
    maxTurns: file.max_turns ?? undefined,
    autoTrigger: file.auto_trigger ?? defaults.autoTrigger,
    checkBeforeSend: file.check_before_send ?? defaults.checkBeforeSend,
    pinnedTurnIndices: file.pinned_turn_indices ?? defaults.pinnedTurnIndices
  }
}

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/**
 * Whether every turn above the target is followed by a compaction, regardless of the threshold.
 *
 * @since 0.1.0
 * @category predicates
 */
export function isContinuous({ pressurePercent }: CompactionConfig): boolean {
  return pressurePercent === 0
}

/**
 * How many turns stay once there are too many. Fewer than the limit, so that not every turn compacts again.
 *
 * @since 0.1.0
 * @category getters
 */
export const turnsToKeep = ({ maxTurns = 0, preserveRecentTurns, targetPercent }: CompactionConfig): number =>
  Math.max(preserveRecentTurns, Math.floor((maxTurns * targetPercent) / 100))
