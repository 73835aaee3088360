/** Prints what happens as a {@link Transcript} has it, and draws below it what changes all the time. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Live, Service as Screen } from "../console/ConsoleScreen.js"
import type { AgentEvent, EventOf } from "../../event/AgentEvent.js"
import type * as EventBus from "../../event/EventBus.js"
import * as Display from "../terminal/Display.js"
import * as Activity from "./Activity.js"
import type * as AgentOutline from "./AgentOutline.js"
import * as Piece from "./Piece.js"
import type { Drawing, Transcript } from "./Transcript.js"

export interface Options {
  /** Whether the screen has a width. */
  readonly interactive: boolean
  /** Loaded when the first turn begins. Default: words are printed as they come, and what commands print is not shown. */
  readonly drawing?: Effect.Effect<Drawing> | undefined
  /** Told of each event before it is shown. */
  readonly seen?: ((event: AgentEvent) => void) | undefined
  /** Run whenever the main agent's turn has been shown to its end. */
  readonly afterTurn?: Effect.Effect<unknown> | undefined
  /** Run whenever all that has happened was shown. */
  readonly afterAll?: Effect.Effect<unknown> | undefined
}

/**
 * Prints events until their end. Events that arrive together are printed together, with one status after them. Whoever
 * interrupts it has what is still drawn printed: nothing that was on the screen goes. When drawing fails, the person reads
 * that, and the rest as plain text.
 */
export const follow = (
  events: EventBus.Subscription,
  screen: Screen,
  transcript: Transcript,
  { afterAll = Effect.void, afterTurn = Effect.void, drawing, interactive, seen = () => {} }: Options
): Effect.Effect<void> =>
  Effect.suspend(() => {
    let status: Activity.Activity | undefined
    let [isLoaded, isDrawn] = [false, false]
    let pieces: Array<Piece.Piece> = []
    let hasFailed = false
    const attempt = <A>(draw: () => A, otherwise: A): A => {
      try {
        return draw()
      } catch (cause) {
        transcript.draw({})
        ;[isLoaded, isDrawn] = [true, false]
        if (!hasFailed) pieces.push({ whole: true, text: failure(cause) })
        hasFailed = true
        return otherwise
      }
    }
    const live: Live = (columns, rows) => attempt(() => transcript.live(columns, rows), [])
    const printings = screen.printings ?? (() => 0)
    let ours = printings()
    const width = interactive ? screen.columns : Effect.succeed(undefined)
    const print = Effect.suspend(() => {
      const shown = Piece.joined(pieces)
      pieces = []
      return Effect.ensuring(
        Effect.forEach(shown, ({ text, whole }) => (whole ? screen.printLine(text) : screen.print(text)), {
          discard: true
        }),
        Effect.sync(() => (ours = printings()))
      )
    })
    const printRest = Effect.flatMap(width, (columns) => {
      pieces.push(...attempt(() => transcript.rest(columns), []))
      return Effect.all([print, isDrawn ? screen.live(undefined) : Effect.void, screen.status(undefined)])
    })
    return Effect.gen(function* () {
      for (;;) {
        const batch = yield* events.takeAll
        if (Option.isNone(batch)) return
        const columns = yield* width
        /** Words come in helpings, with a moment for keys after each. */
        const settle = Effect.gen(function* () {
          for (let more = isDrawn && columns !== undefined; more;) {
            const taken = attempt(() => transcript.settle(columns ?? Infinity), { pieces: [], more: false })
            pieces.push(...taken.pieces)
            more = taken.more
            if (more) yield* Effect.zipRight(print, Effect.sleep(0))
          }
        })
        let said = 0
        let isStreaming = isDrawn
        for (const event of batch.value) {
          seen(event)
          if (event._tag === "TurnStarted" && drawing !== undefined && !isLoaded) {
            transcript.draw(yield* drawing)
            isLoaded = true
            isDrawn = columns !== undefined
          }
          if (isStreamed(event)) said += event.text.length
          else isStreaming = false
          if (said > helping || (said > 0 && !isStreamed(event))) {
            yield* settle
            said = 0
          }
          if (printings() !== ours) transcript.part()
          ours = printings()
          pieces.push(...attempt(() => transcript.show(event, columns), []))
          const isEnd = event._tag === "TurnEnded" && Option.exists(transcript.outline.of(event.sessionId), isMain)
          if (isEnd) yield* Effect.zipRight(print, afterTurn)
        }
        yield* settle
        yield* print
        if (isDrawn || hasFailed) yield* screen.live(isDrawn ? live : undefined)
        const next = columns === undefined ? undefined : attempt(() => transcript.status(columns), undefined)
        if (!Activity.isSame(next, status)) yield* screen.status(next)
        status = next
        yield* afterAll
        // More would be drawn than anybody can see.
        if (isStreaming) yield* Effect.sleep(frame)
      }
    }).pipe(Effect.onInterrupt(() => printRest))
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** The shortest time between two pictures of words that stream, in milliseconds. */
const frame = 16

/** Characters that are taken in before what is finished of them is drawn. */
const helping = 16_384

const failure = (cause: unknown): string =>
  `The screen failed to draw (${Display.oneLine(cause instanceof Error ? cause.message : String(cause), 200)}); what follows is shown as plain text.`

const isStreamed = (event: AgentEvent): event is EventOf<"TextDelta" | "ThinkingDelta"> =>
  event._tag === "TextDelta" || event._tag === "ThinkingDelta"

/** Decided by depth, not by first appearance: in a resumed session events of subagents come first. */
const isMain = ({ depth }: AgentOutline.Node): boolean => depth === 0
