/**
 * A screen for a person who only watches: lines, and below them what is going on, drawn again and again. Nothing is read.
 * A job in the background draws nothing: the rows belong to the shell then, and whatever else runs there.
 */
import * as Terminal from "@effect/platform/Terminal"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FiberHandle from "effect/FiberHandle"
import type * as Scope from "effect/Scope"
import type { Live, Service as Screen, Status } from "../console/ConsoleScreen.js"
import * as Display from "../terminal/Display.js"
import * as LiveRegion from "../terminal/LiveRegion.js"
import * as ScreenLayout from "../terminal/ScreenLayout.js"

/** Draws below what a screen of lines prints, until the scope closes. */
export const of = (
  lines: Screen,
  /** Whether the terminal is ours at this moment. */
  isOurs: () => boolean
): Effect.Effect<Screen, never, Terminal.Terminal | Scope.Scope> =>
  Effect.gen(function* () {
    const terminal = yield* Terminal.Terminal
    const style = Display.style(lines.color)
    const lock = Effect.unsafeMakeSemaphore(1)
    /** Nothing while no row is ours. */
    let region: LiveRegion.LiveRegion | undefined
    let size = { columns: 0, rows: 0 }
    let status: Status | undefined
    let live: Live | undefined
    let frame = 0

    const view = (now: number): LiveRegion.View => {
      const above = live?.(size.columns, size.rows - 2) ?? []
      const rows = [
        ...above,
        status === undefined ? "" : ScreenLayout.statusRow(style, status, frame, now, size.columns)
      ]
      return { rows, row: rows.length - 1, column: 0 }
    }
    const sizeNow = Effect.map(Effect.all([terminal.columns, terminal.rows]), ([columns, rows]) => ({
      columns: columns > 0 ? columns : 80,
      rows: rows > 0 ? rows : 24
    }))
    /** Has rows drawn; `otherwise` runs where none may be. */
    const change = (
      draw: (drawn: LiveRegion.LiveRegion, view: LiveRegion.View) => string,
      otherwise: Effect.Effect<void> = Effect.void
    ): Effect.Effect<void> =>
      lock.withPermits(1)(
        Effect.uninterruptible(
          Effect.flatMap(Effect.all([Clock.currentTimeMillis, sizeNow]), ([now, next]) => {
            if (!isOurs()) {
              region = undefined
              return otherwise
            }
            const isOther = next.columns !== size.columns || next.rows !== size.rows
            size = next
            const wanted = view(now)
            const resized = region !== undefined && isOther ? region.resize(next.columns, next.rows, wanted) : ""
            region ??= LiveRegion.make(next)
            const out = resized + draw(region, wanted)
            return out === "" ? Effect.void : Effect.ignore(terminal.display(out))
          })
        )
      )
    const paint = change((drawn, view) => drawn.paint(view))
    const turning = yield* FiberHandle.make<void>()
    const turn = Effect.repeat(
      Effect.zipRight(
        Effect.sleep("100 millis"),
        Effect.suspend(() => {
          frame++
          return paint
        })
      ),
      { while: () => status !== undefined }
    )
    yield* Effect.acquireRelease(
      Effect.sync(() => {
        // The shell has written since: what is above is not what it was.
        const forget = () => (region = undefined)
        process.on("SIGCONT", forget)
        return forget
      }),
      (forget) =>
        Effect.zipRight(
          change((drawn) => drawn.close()),
          Effect.sync(() => process.off("SIGCONT", forget))
        )
    )
    return {
      ...lines,
      print: (text) => change((drawn, view) => drawn.print(text, view), lines.print(text)),
      printLine: (text) =>
        change((drawn, view) => drawn.print(`${drawn.unfinished() ? "\n" : ""}${text}\n`, view), lines.printLine(text)),
      status: (next) =>
        Effect.suspend(() => {
          status = next
          const turned =
            next === undefined ? FiberHandle.clear(turning) : FiberHandle.run(turning, turn, { onlyIfMissing: true })
          return Effect.zipRight(paint, turned)
        }),
      live: (next) =>
        Effect.suspend(() => {
          live = next
          return paint
        })
    }
  })
