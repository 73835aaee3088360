/** A tracer that keeps the spans that ended, in order, and shows them as plain values. */
import * as Cause from "effect/Cause"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Tracer from "effect/Tracer"

export interface Ended {
  readonly name: string
  /** Name of the span above. */
  readonly parent: string | undefined
  readonly millis: readonly [begin: number, end: number]
  readonly status: "ok" | "error" | "interrupted"
  readonly attributes: { readonly [name: string]: unknown }
}

export interface Traces {
  readonly tracer: Tracer.Tracer
  readonly ended: () => ReadonlyArray<Ended>
  /** Each span with those above it: `turn > tool > turn`. */
  readonly outline: () => ReadonlyArray<string>
  /** Spans that began and did not end. */
  readonly open: () => number
  /** All that an exporter could get to see, as one text. */
  readonly text: () => string
}

interface Kept extends Tracer.Span {
  status: Tracer.SpanStatus
  exit: Exit.Exit<unknown, unknown> | undefined
}

export const make = (): Traces => {
  const done: Array<Kept> = []
  let count = 0
  const tracer = Tracer.make({
    span: (name, parent, context, links, startTime, kind) => {
      const attributes = new Map<string, unknown>()
      const id = (++count).toString(16)
      const span: Kept = {
        _tag: "Span",
        name,
        spanId: id.padStart(16, "0"),
        traceId: Option.match(parent, { onNone: () => id.padStart(32, "0"), onSome: ({ traceId }) => traceId }),
        parent,
        context,
        status: { _tag: "Started", startTime },
        attributes,
        links,
        sampled: true,
        kind,
        exit: undefined,
        end(endTime, exit) {
          span.status = { _tag: "Ended", startTime, endTime, exit }
          span.exit = exit
          done.push(span)
        },
        attribute: (key, value) => attributes.set(key, value),
        event: () => {},
        addLinks: () => {}
      }
      return span
    },
    context: (f) => f()
  })
  const ended = () => done.map(shown)
  return {
    tracer,
    ended,
    outline: () => done.map((span) => path(span).join(" > ")),
    open: () => count - done.length,
    text: () =>
      JSON.stringify([
        ended(),
        done.map(({ exit }) => (exit !== undefined && Exit.isFailure(exit) ? Cause.pretty(exit.cause) : ""))
      ])
  }
}

// -----------------------------------------------------------------------------------------------------------------

const shown = (span: Kept): Ended => ({
  name: span.name,
  parent: Option.getOrUndefined(Option.map(span.parent, nameOf)),
  millis: [
    Number(span.status.startTime / 1_000_000n),
    span.status._tag === "Ended" ? Number(span.status.endTime / 1_000_000n) : -1
  ],
  status:
    span.exit === undefined || Exit.isSuccess(span.exit)
      ? "ok"
      : Cause.isInterruptedOnly(span.exit.cause)
        ? "interrupted"
        : "error",
  attributes: Object.fromEntries(span.attributes)
})

const nameOf = (span: Tracer.AnySpan): string => (span._tag === "Span" ? span.name : span.spanId)

const path = (span: Tracer.AnySpan): ReadonlyArray<string> =>
  span._tag === "Span"
    ? [
        ...Option.match(span.parent, { onNone: (): ReadonlyArray<string> => [], onSome: path }),
        span.name.replace(/^assent\./, "")
      ]
    : [span.spanId]
