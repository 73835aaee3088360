/**
 * A limit for the time that synchronous work on foreign text may take. A parser of others may need a time that grows with
 * the square of a text, or faster, and nothing else runs meanwhile: no key is read. Work that exceeds the limit is cut
 * off in the middle, also within a regular expression.
 *
 * The limit counts time of the processor, so what a person sees does not depend on what else the machine does. Node cuts
 * by the clock: work that was cut early, because other processes had the processor, begins again.
 */
import * as Option from "effect/Option"

/** Milliseconds that a person does not notice between two keys. */
export const turn = 25

/**
 * None when the work was cut off. The work may run several times, no `finally` of it runs when it is cut, and what it
 * throws is thrown. Work within limited work has the limit of the outer one.
 */
export const run = <A>(work: () => A, milliseconds: number = turn): Option.Option<A> => {
  if (isRunning) return Option.some(work())
  const { call } = (calling ??= { call: scriptOf() })
  if (call === undefined) return Option.some(work())
  isRunning = true
  try {
    for (let timeout = milliseconds; ; timeout *= 2) {
      const before = computed()
      try {
        return Option.some(call(work, timeout))
      } catch (cause) {
        if (!isCut(cause)) throw cause
        if (computed() - before >= milliseconds * 0.8 || timeout > milliseconds * mostDelayed) return Option.none()
      }
    }
  } finally {
    isRunning = false
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** How many times as long as its limit work may last on a machine that does something else. */
const mostDelayed = 64

let isRunning = false

const isCut = (cause: unknown): boolean =>
  cause instanceof Error && "code" in cause && cause.code === "ERR_SCRIPT_EXECUTION_TIMEOUT"

/** Milliseconds of the processor's time. */
const computed = (): number => {
  const { system = 0, user = 0 } = globalThis.process?.cpuUsage() ?? {}
  return (system + user) / 1_000
}

/** Node cuts off scripts only. This one calls what lies under a symbol. Elsewhere nothing is cut off. */
const scriptOf = () => {
  const vm = globalThis.process?.getBuiltinModule?.("node:vm")
  if (vm === undefined) return undefined
  const place = Symbol.for("assent/tui/TimeLimit")
  const script = new vm.Script('globalThis[Symbol.for("assent/tui/TimeLimit")]()')
  return <A>(work: () => A, timeout: number): A => {
    let result: Option.Option<A> = Option.none()
    Reflect.set(globalThis, place, () => {
      result = Option.some(work())
    })
    script.runInThisContext({ timeout })
    return Option.getOrThrow(result)
  }
}
let calling: { readonly call: ReturnType<typeof scriptOf> } | undefined
