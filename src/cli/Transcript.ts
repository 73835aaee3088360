/** Events as a person reads them: what to print for each, and what the status line says. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Service as Screen } from "../channel/ConsoleScreen.js"
import * as Display from "../channel/Display.js"
import type { AgentEvent } from "../event/AgentEvent.js"
import type * as EventBus from "../event/EventBus.js"

/** What to do with an event. */
export interface Shown {
  /** To be printed as it is; may end in the middle of a line. */
  readonly text?: string
  /** To be printed as whole lines. */
  readonly line?: string
  /** The new status; `null` for none any more. */
  readonly status?: { readonly text: string; readonly since: number } | null
}

export interface Options {
  readonly color: boolean
  /** Show what the model thinks, and tool output while it comes. */
  readonly verbose: boolean
}

export interface Transcript {
  readonly show: (event: AgentEvent) => Shown
  /** Tokens so far, for `/cost`. */
  readonly usage: () => { readonly calls: number; readonly input: number; readonly output: number }
}

export const make = ({ color, verbose }: Options): Transcript => {
  const style = Display.style(color)
  let calls = 0
  let input = 0
  let output = 0
  const show = (event: AgentEvent): Shown => {
    switch (event._tag) {
      case "AgentStatusChanged":
        return {
          status: event.status === "idle" || event.status === "done" ? null : { text: event.status, since: event.at }
        }
      case "BlockStarted":
        return event.block === "thinking" && !verbose ? {} : { line: "" }
      case "TextDelta":
        return { text: Display.sanitize(event.text) }
      case "ThinkingDelta":
        return verbose ? { text: style.dim(Display.sanitize(event.text)) } : {}
      case "BlockEnded":
        return event.block === "thinking" && !verbose ? {} : { text: "\n" }
      case "ModelCallEnded":
        calls++
        input += event.usage.inputTokens ?? 0
        output += event.usage.outputTokens ?? 0
        return {}
      case "ModelRetried":
        return {
          line: style.dim(
            `  ${Display.oneLine(event.reason)} Trying again in ${seconds(event.delay)} (attempt ${event.attempt}).`
          )
        }
      case "ToolCallStarted":
        return { line: `${style.bold(`● ${event.tool}`)} ${style.dim(Display.oneLine(event.summary, 160))}` }
      case "ToolOutput":
        return verbose ? { text: style.dim(Display.sanitize(event.text)) } : {}
      case "ToolCallEnded": {
        const time = event.duration === undefined ? "" : ` ${seconds(event.duration)}`
        const summary = style.dim(Display.oneLine(event.summary, 160))
        return event.outcome === "succeeded"
          ? { line: `  ${style.green("✓")}${style.dim(time)} ${summary}` }
          : { line: `  ${style.red(`✗ ${event.tool} ${event.outcome}`)}${style.dim(time)} ${summary}` }
      }
      case "UserInterjected":
        return { line: style.dim(`  ↳ to ${event.targetAgent}`) }
      case "InteractorFailed":
        return { line: style.dim(`  ${event.interactor} cannot answer: ${Display.oneLine(event.reason)}`) }
      case "PermissionStatusChanged":
        return {
          line: style.dim(
            `  permissions: ${event.default}${event.suspension === undefined ? "" : `, asking nothing (${event.suspension})`}`
          )
        }
      case "Lagged":
        return { line: style.dim(`  … ${event.missed} events not shown`) }
      case "AgentError":
        return { line: style.red(Display.sanitize(event.message)) }
      case "TurnEnded":
        switch (event.reason) {
          case "completed":
            return {}
          case "cancelled":
            return { line: style.dim(`— cancelled (${event.detail ?? "user"}) —`) }
          default:
            return { line: style.red(`— ${event.reason.replace("_", " ")}: ${Display.sanitize(event.detail ?? "")} —`) }
        }
      default:
        return {}
    }
  }
  return { show, usage: () => ({ calls, input, output }) }
}

/**
 * Prints events until their end. Text that arrived together is printed together. `afterTurn` runs whenever a turn has been
 * shown to its end.
 */
export const follow = (
  events: EventBus.Subscription,
  screen: Screen,
  transcript: Transcript,
  afterTurn: Effect.Effect<unknown> = Effect.void
): Effect.Effect<void> =>
  Effect.gen(function* () {
    for (;;) {
      const batch = yield* events.takeAll
      if (Option.isNone(batch)) return
      let text = ""
      const flush = Effect.suspend(() => {
        const out = text
        text = ""
        return out === "" ? Effect.void : screen.print(out)
      })
      for (const event of batch.value) {
        const shown = transcript.show(event)
        if (shown.text !== undefined) text += shown.text
        if (shown.line !== undefined) {
          yield* flush
          if (shown.line !== "") yield* screen.printLine(shown.line)
        }
        if (shown.status !== undefined) {
          yield* flush
          yield* screen.status(shown.status ?? undefined)
        }
        if (event._tag === "TurnEnded") yield* Effect.zipRight(flush, afterTurn)
      }
      yield* flush
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const seconds = (milliseconds: number): string =>
  milliseconds < 1_000 ? `${Math.round(milliseconds)} ms` : `${(milliseconds / 1_000).toFixed(1)} s`
