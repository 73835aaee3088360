/**
 * The port for recording decisions: one trail for each root session, one record for each decision, in the order of the
 * decisions.
 *
 * An ambient value whose default keeps nothing, so a program need not provide it. `AuditFile.layer` writes trails that
 * cannot be changed unnoticed; {@link layerMemory} keeps them for tests.
 *
 * @example
 * ```ts
 * import { AuditTrail, Interaction, Interactor } from "assent"
 * import { Effect } from "effect"
 *
 * const decisions = Effect.gen(function* () {
 *   yield* Interactor.ask(new Interaction.Confirm({ prompt: "Deploy?", default: false }))
 *   const memory = yield* AuditTrail.AuditMemory
 *   return yield* memory.decisions
 * }).pipe(Effect.provide(AuditTrail.layerMemory()))
 * ```
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { SessionId } from "../core/Id.js"
import * as Redaction from "../core/Redaction.js"
import * as AuditRecord from "./AuditRecord.js"

export type { AuditEntry, Decided, ForkOf } from "./AuditRecord.js"

/**
 * A decision could not be recorded. The action that it would have allowed must not happen.
 *
 * @since 0.1.0
 * @category errors
 */
export class AuditUnwritable extends Schema.TaggedError<AuditUnwritable>("assent/audit/AuditUnwritable")(
  "AuditUnwritable",
  { directory: Schema.String, sessionId: Schema.optional(SessionId), reason: Schema.String }
) {
  override get message(): string {
    const whose = this.sessionId === undefined ? "" : ` of session ${this.sessionId}`
    return `The audit${whose} in ${this.directory} cannot be written: ${this.reason}. Nothing is allowed unrecorded; put that right, then try again.`
  }
}

/**
 * Where decisions are written down before they count.
 *
 * @since 0.1.0
 * @category services
 */
export interface Service {
  /**
   * Records a decision, and returns when it is kept. Decisions of one root session are kept in the order of these
   * calls. A grant is recorded before it takes effect, and does not take effect when this fails. Interrupting the wait
   * does not take the record back.
   */
  readonly record: (entry: AuditRecord.AuditEntry) => Effect.Effect<void, AuditUnwritable>
  /**
   * Present if the store of the session keeps its audit. Adds decisions that become durable with the journal's entry about
   * them, in one step: neither is there without the other. The caller adds that entry in the same step. Yields why there is
   * no record of them, if there is none.
   */
  readonly note?: ((entries: ReadonlyArray<AuditRecord.AuditEntry>) => AuditUnwritable | undefined) | undefined
  /** Releases a root session that has ended; its trail stays, and continues if the session is resumed. */
  readonly release: (rootSessionId: SessionId) => Effect.Effect<void>
}

/**
 * The running program's audit.
 *
 * @since 0.1.0
 * @category services
 */
export class AuditTrail extends Context.Reference<AuditTrail>()("assent/audit/AuditTrail", {
  defaultValue: (): Service => noop
}) {}

/**
 * Reads what {@link layerMemory} keeps.
 *
 * @since 0.1.0
 * @category services
 */
export class AuditMemory extends Context.Tag("assent/audit/AuditMemory")<
  AuditMemory,
  {
    /** Every decision so far, in order. */
    readonly decisions: Effect.Effect<ReadonlyArray<AuditRecord.Decided>>
  }
>() {}

/**
 * Like `record` of the running program's audit.
 *
 * @since 0.1.0
 * @category operations
 */
export const record = (entry: AuditRecord.AuditEntry): Effect.Effect<void, AuditUnwritable> =>
  Effect.flatMap(AuditTrail, (trail) => trail.record(entry))

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * A trail that keeps nothing.
 *
 * @since 0.1.0
 * @category constructors
 */
export const noop: Service = { record: () => Effect.void, release: () => Effect.void }

/**
 * Keeps every decision in memory until the program ends. The record is made when it is read, so that keeping costs next
 * to nothing.
 *
 * @since 0.1.0
 * @category constructors
 */
export const makeMemory = (
  redactor: Redaction.Redactor = Redaction.shapesOnly
): Effect.Effect<{ readonly trail: Service; readonly memory: AuditMemory["Type"] }> =>
  Effect.sync(() => {
    const entries: Array<AuditRecord.AuditEntry> = []
    return {
      trail: {
        record: (entry) =>
          Effect.sync(() => {
            entries.push(entry)
          }),
        release: () => Effect.void
      },
      memory: { decisions: Effect.sync(() => entries.map((entry) => AuditRecord.decided(entry, redactor))) }
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------------------------------------------

/**
 * Keeps nothing: the default of a program that provides no audit.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerNoop: Layer.Layer<AuditTrail> = Layer.succeed(AuditTrail, noop)

/**
 * Keeps everything in memory, for tests.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory = (redactor?: Redaction.Redactor): Layer.Layer<AuditTrail | AuditMemory> =>
  Layer.effectContext(
    Effect.map(makeMemory(redactor), ({ trail, memory }) =>
      Context.make(AuditMemory, memory).pipe(Context.add(AuditTrail, trail))
    )
  )
