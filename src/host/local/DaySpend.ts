/**
 * What the sessions of a workspace spend on a day, in a file that all its processes write: one line for each model call that
 * has a price. A call is counted when it is over, whichever store keeps its session.
 */
import type * as Clock from "effect/Clock"
import * as Lazy from "../../core/Lazy.js"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as fs from "node:fs"
import * as path from "node:path"
import type { Day } from "../../model/TokenLedger.js"
import * as UserLocation from "./UserLocation.js"

export interface Options {
  /** The folder of the workspace's state. It exists. */
  readonly folder: string
  readonly clock: Clock.Clock
  /** Only money of this currency is counted. */
  readonly currency: string
  /** Called with a sentence when the file cannot be read or written. */
  readonly failed: (sentence: string) => void
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** The days of the person's own time zone. Files of earlier days are removed with the first spend of a day. */
export const make = ({ clock, currency, failed, folder }: Options): Day => {
  const today = (): string => {
    const now = new Date(clock.unsafeCurrentTimeMillis())
    return [now.getFullYear(), now.getMonth() + 1, now.getDate()].map((part) => String(part).padStart(2, "0")).join("-")
  }
  let known: Known = { day: "", at: 0, total: 0, unwritten: 0 }
  const knownOf = (day: string): Known => (known.day === day ? known : { day, at: 0, total: 0, unwritten: 0 })
  const fileOf = (day: string): string => path.join(folder, `${prefix}${day}${suffix}`)
  return {
    today,
    spent: () => {
      const day = today()
      const file = fileOf(day)
      known = knownOf(day)
      try {
        known = readOn(file, known, currency)
      } catch (error) {
        failed(
          `The spend of today cannot be read from ${file}: ${UserLocation.reasonOf(error)}. Assent counts the spend that it knows.`
        )
      }
      return known.total + known.unwritten
    },
    add: (cost) => {
      const day = today()
      const file = fileOf(day)
      try {
        if (!fs.existsSync(file)) removeOthers(folder, path.basename(file))
        const { O_APPEND, O_CREAT, O_NOFOLLOW, O_WRONLY } = fs.constants
        const line = `${JSON.stringify({ cost, currency })}\n`
        const descriptor = fs.openSync(file, O_APPEND | O_CREAT | O_WRONLY | O_NOFOLLOW, 0o600)
        try {
          fs.writeSync(descriptor, line)
        } finally {
          fs.closeSync(descriptor)
        }
      } catch (error) {
        // This process still counts it.
        const before = knownOf(day)
        known = { ...before, unwritten: before.unwritten + cost }
        failed(
          `The spend of today cannot be written to ${file}: ${UserLocation.reasonOf(error)}. Other processes do not count it.`
        )
      }
    }
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** What was read of a day's file, up to a byte. */
interface Known {
  readonly day: string
  readonly at: number
  readonly total: number
  readonly unwritten: number
}

const prefix = "spend-"
const suffix = ".jsonl"

const decode = Lazy.make(() =>
  Schema.decodeUnknownOption(
    Schema.parseJson(Schema.Struct({ cost: Schema.NonNegative.pipe(Schema.finite()), currency: Schema.String }))
  )
)

/** Reads whole lines only: another process may be writing one. A damaged line counts nothing. */
const readOn = (file: string, before: Known, currency: string): Known => {
  const size = sizeOf(file)
  const from = size < before.at ? { ...before, at: 0, total: 0 } : before
  if (size === from.at) return from
  const bytes = readFrom(file, from.at)
  const end = bytes.lastIndexOf(0x0a) + 1
  const costs = new TextDecoder()
    .decode(bytes.subarray(0, end))
    .split("\n")
    .flatMap((line) =>
      Option.match(decode(line), {
        onNone: () => [],
        onSome: (spend) => (spend.currency === currency ? [spend.cost] : [])
      })
    )
  return { ...from, at: from.at + end, total: costs.reduce((sum, cost) => sum + cost, from.total) }
}

const sizeOf = (file: string): number => {
  const found = fs.lstatSync(file, { throwIfNoEntry: false })
  return found?.isFile() === true ? found.size : 0
}

const readFrom = (file: string, at: number): Uint8Array => {
  const descriptor = fs.openSync(file, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW)
  try {
    const bytes = new Uint8Array(Math.max(0, fs.fstatSync(descriptor).size - at))
    return bytes.subarray(0, fs.readSync(descriptor, bytes, 0, bytes.length, at))
  } finally {
    fs.closeSync(descriptor)
  }
}

const removeOthers = (folder: string, name: string): void => {
  for (const other of fs.readdirSync(folder)) {
    if (other.startsWith(prefix) && other.endsWith(suffix) && other < name) {
      fs.rmSync(path.join(folder, other), { force: true })
    }
  }
}
