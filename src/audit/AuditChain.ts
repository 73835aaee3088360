/**
 * How the records of an audit trail are chained, and how the chain is verified. All pure.
 *
 * ```
 *  trail   {… "prev":"000…","seq":1,"hash":"a1…"}      Opened: the root session, the version
 *          {… "prev":"a1…", "seq":2,"hash":"b2…"}      Decided
 *          {… "prev":"b2…", "seq":3,"hash":"c3…"}      Decided
 *  head    {"count":3,"hash":"c3…",… "seal":"…"}       kept elsewhere
 * ```
 *
 * A record's hash covers all of its other members, and so the hash before it. A record has exactly one text as its
 * line. With a key, hashes and seal are HMACs: without the key nobody can change anything unnoticed, not even in both
 * places. One change stays unnoticed: trail and head both put back to an earlier state.
 *
 * The trail is written first, the head second, and a decision takes effect after both. So after a crash the head may
 * lag behind its trail by decisions that took no effect; it never runs ahead.
 */
import * as Either from "effect/Either"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Lazy from "../core/Lazy.js"
import * as Digest from "../core/Digest.js"
import { SessionId } from "../core/Id.js"
import { AuditBroken } from "./AuditBroken.js"
import * as AuditRecord from "./AuditRecord.js"

/** The end of a chain: number and hash of the last record, to which the next one is attached. */
export interface Link {
  readonly seq: number
  readonly hash: string
}

/** The outline of a trail whose records chain from the first one on. */
export interface Summary {
  readonly sessionId: SessionId
  readonly keyed: boolean
  readonly last: Link
  /** Hash of the record that the head names; absent when there is no record of that number. */
  readonly sealed: string | undefined
  /** Bytes after the last whole line: a record that was not written to its end. */
  readonly torn: number
}

/** The outline with the records. */
export interface Chain extends Summary {
  readonly records: ReadonlyArray<AuditRecord.AuditRecord>
}

/** The facts about a trail that are kept outside it. */
const Head = Schema.Struct({
  version: Schema.Number,
  sessionId: SessionId,
  /** Directory of the trail when it was begun. */
  directory: Schema.String,
  /** The number of sealed records. */
  count: Schema.Number,
  /** Hash of the last sealed record. */
  hash: Schema.String,
  /** Hash of the head's other members. */
  seal: Schema.String
})
export type Head = typeof Head.Type

/** The link of the first record. */
export const start: Link = { seq: 0, hash: "0".repeat(64) }

/**
 * What seals a chain, so that nobody without it can forge one.
 *
 * @since 0.1.0
 * @category models
 */
export type Key = Redacted.Redacted

// -----------------------------------------------------------------------------------------------------------------
// writing
// -----------------------------------------------------------------------------------------------------------------

/** The line of the next record, its line end included, and the link for the record after it. */
export const append = (
  after: Link,
  content: AuditRecord.Content,
  key: Key | undefined
): { readonly line: string; readonly link: Link } => {
  const seq = after.seq + 1
  const body = Digest.canonicalJson({ ...content, seq, prev: after.hash })
  const hash = hashOf(body, key)
  return { line: `${sealedText(body, "hash", hash)}\n`, link: { seq, hash } }
}

/** The text of a head. */
export const renderHead = (
  { count, directory, hash, sessionId }: Omit<Head, "seal" | "version">,
  key: Key | undefined
): string => {
  const body = Digest.canonicalJson({ count, directory, hash, sessionId, version: AuditRecord.version })
  return `${sealedText(body, "seal", hashOf(body, key))}\n`
}

/** Identifies a key without revealing it: an HMAC of a fixed text under it. */
export const fingerprint = (key: Key): string => hashOf("assent audit key", key).slice(0, 16)

// -----------------------------------------------------------------------------------------------------------------
// checking
// -----------------------------------------------------------------------------------------------------------------

/** The files of one trail. */
export interface Files {
  /** The trail's name in messages. */
  readonly trail: string
  /** The head's name in messages. */
  readonly head: string
  /** The root session that the trail must belong to; any when absent. */
  readonly sessionId?: SessionId | undefined
}

/** Follows the chain from the first record to the last. */
export const follow = (files: Files, trail: Uint8Array, key?: Key, sealAt = 0): Either.Either<Chain, AuditBroken> =>
  Either.gen(function* () {
    const records: Array<AuditRecord.AuditRecord> = []
    const follower = new Follower(files, key, sealAt)
    const { lines, torn } = split(trail)
    for (const line of lines) records.push(yield* follower.take(line))
    return { ...(yield* follower.end(torn)), records }
  })

/** Follows a chain line by line, so that a trail need not be in memory. */
export class Follower {
  private last = start
  private sealed: string | undefined
  private opened: Extract<AuditRecord.AuditRecord, { readonly _tag: "Opened" }> | undefined

  /** `sealAt`: the number of the record whose hash the head must have. */
  constructor(
    private readonly files: Files,
    private readonly key: Key | undefined,
    private readonly sealAt: number
  ) {}

  take(line: Line): Either.Either<AuditRecord.AuditRecord, AuditBroken> {
    const seq = this.last.seq + 1
    const broken = (problem: AuditBroken["problem"], found?: number) =>
      Either.left(new AuditBroken({ file: this.files.trail, problem, record: seq, found }))
    const parsed = parse(line)
    if (parsed === undefined) return broken("unreadable")
    // The first record says whether there is a key. Without that knowledge no hash can be checked.
    const keyProblem = seq === 1 ? keyProblemOf(parsed.members, this.key) : undefined
    if (keyProblem !== undefined) return broken(keyProblem)
    const hash = hashOf(parsed.body, this.key)
    if (line.text !== sealedText(parsed.body, "hash", hash)) return broken("changed")
    const record = decodeRecord(parsed.members)
    if (Either.isLeft(record)) return broken("unknown")
    const { _tag, prev, seq: found } = record.right
    if (found !== seq) return broken("misplaced", found)
    if (prev !== this.last.hash) return broken("unlinked")
    if ((seq === 1) !== (_tag === "Opened")) return broken("unknown")
    if (record.right._tag === "Opened") this.opened = record.right
    if (seq === this.sealAt) this.sealed = hash
    this.last = { seq, hash }
    return Either.right(record.right)
  }

  /** Called after the last whole line; `torn` bytes follow it. */
  end(torn: number): Either.Either<Summary, AuditBroken> {
    const { files, last, opened } = this
    const broken = (fields: Omit<ConstructorParameters<typeof AuditBroken>[0], "file">) =>
      Either.left(new AuditBroken({ file: files.trail, record: 1, ...fields }))
    if (opened === undefined) return broken({ problem: "unreadable", torn })
    if (opened.version !== AuditRecord.version) return broken({ problem: "version", found: opened.version })
    if (opened.sessionId !== (files.sessionId ?? opened.sessionId)) return broken({ problem: "foreign" })
    const sealed = this.sealAt === 0 ? start.hash : this.sealed
    return Either.right({ sessionId: opened.sessionId, keyed: opened.key !== undefined, last, sealed, torn })
  }
}

/** Reads a head; fails when a single byte differs from what was written. */
const readHead = (file: string, head: Uint8Array, key?: Key): Either.Either<Head, AuditBroken> => {
  const changed = () => new AuditBroken({ file, problem: "headChanged" })
  const { lines, torn } = split(head)
  const [line] = lines
  const decoded = line === undefined || lines.length > 1 || torn > 0 ? undefined : headOf(line)
  if (decoded === undefined) return Either.left(changed())
  return `${line?.text}\n` === renderHead(decoded, key) ? Either.right(decoded) : Either.left(changed())
}

/** The files of one trail, as read. */
export interface Evidence {
  readonly files: Files
  /** Absent when there is no such file. */
  readonly trail: Uint8Array | undefined
  /** Absent when there is no such file. */
  readonly head: Uint8Array | undefined
}

/** Checks every record, the head, and that they belong together. Every change of the written text is found. */
export const check = ({ files, head, trail }: Evidence, key?: Key): Either.Either<Chain, AuditBroken> => {
  if (trail === undefined || !trail.includes(lineEnd)) {
    return Either.map(judge({ files, head, trail: trail && { torn: trail.length, chain: undefined } }, key), noRecords)
  }
  return Either.flatMap(follow(files, trail, key, sealedCount(head)), (chain) =>
    Either.map(judge({ files, head, trail: { torn: chain.torn, chain } }, key), () => chain)
  )
}

/** A trail that was followed to its end. */
export interface Followed {
  readonly files: Files
  /** Absent when there is no such file. */
  readonly head: Uint8Array | undefined
  /** Absent when there is no such file. Its chain is absent when it has no whole line. */
  readonly trail: { readonly torn: number; readonly chain: Summary | undefined } | undefined
}

/** The number of sealed records according to a head, unverified: the record whose hash the head names. */
export const sealedCount = (head: Uint8Array | undefined): number => (head && peekHead(head)?.count) ?? 0

/** Checks that a consistent trail belongs to its head. */
export const judge = ({ files, head, trail }: Followed, key?: Key): Either.Either<Summary, AuditBroken> =>
  Either.gen(function* () {
    if (head === undefined) {
      const { file, ...problem } =
        trail === undefined
          ? ({ file: files.trail, problem: "missing" } as const)
          : trail.chain === undefined
            ? ({ file: files.trail, problem: "unreadable", record: 1, torn: trail.torn } as const)
            : ({ file: files.head, problem: "headMissing" } as const)
      return yield* Either.left(new AuditBroken({ file, ...problem }))
    }
    if (trail?.chain !== undefined) {
      return yield* compare(files.trail, trail.chain, yield* readHead(files.head, head, key))
    }
    // Nothing was written yet, or no record was written whole, or the trail is gone.
    const { count, sessionId } = yield* readHead(files.head, head, key)
    const torn = trail?.torn ?? 0
    if (sessionId !== (files.sessionId ?? sessionId)) {
      return yield* Either.left(new AuditBroken({ file: files.head, problem: "foreign" }))
    }
    if (count === 0 && torn === 0) {
      return { sessionId, keyed: key !== undefined, last: start, sealed: start.hash, torn }
    }
    const broken = new AuditBroken({
      file: files.trail,
      problem: count === 0 ? "unsealed" : trail === undefined ? "missing" : "cut",
      record: 1,
      records: count,
      torn
    })
    return yield* Either.left(broken)
  })

/**
 * The end of a chain, by its head and its last line alone, for a place where both are written in one step. The records before
 * are not looked at.
 */
export const endOf = (
  { files, head, line }: Pick<Evidence, "files" | "head"> & { readonly line: string | undefined },
  key?: Key
): Either.Either<Link, AuditBroken> =>
  Either.gen(function* () {
    if (head === undefined) {
      if (line === undefined) return start
      return yield* Either.left(new AuditBroken({ file: files.head, problem: "headMissing" }))
    }
    const { count, hash, sessionId } = yield* readHead(files.head, head, key)
    const broken = (problem: AuditBroken["problem"], records?: number) =>
      Either.left(new AuditBroken({ file: files.trail, problem, record: Math.max(1, count), records }))
    if (sessionId !== (files.sessionId ?? sessionId)) return yield* broken("foreign")
    const last = line === undefined ? undefined : parse({ text: line })
    if (line === undefined || last === undefined) return yield* broken("missing", count)
    const isSealed = line === sealedText(last.body, "hash", hash) && hash === hashOf(last.body, key)
    return isSealed && last.members["seq"] === count ? { seq: count, hash } : yield* broken("replaced")
  })

/** What is needed to continue a trail. */
export interface Recovery {
  readonly last: Link
  /** Bytes of whole lines. */
  readonly size: number
  /** Records at the end that chain, but were not sealed. */
  readonly unsealed: number
  /** Bytes after the last whole line. */
  readonly torn: number
}

/** The continuation of a trail that verifies, apart from what a crash left at its end. */
export const recover = (evidence: Evidence, key?: Key): Either.Either<Recovery, AuditBroken> => {
  const { files, trail = new Uint8Array() } = evidence
  const checked = check(evidence, key)
  if (Either.isRight(checked)) {
    return Either.right({ last: checked.right.last, size: trail.length, unsealed: 0, torn: 0 })
  }
  const { problem, records = 0, torn = 0 } = checked.left
  if (problem !== "unsealed") return Either.left(checked.left)
  const size = trail.length - torn
  return size === 0
    ? Either.right({ last: start, size, unsealed: 0, torn })
    : Either.map(follow(files, trail, key), ({ last }) => ({ last, size, unsealed: records, torn }))
}

/** The records in a trail's lines, unverified; undefined for a line that is no record. */
export const peek = (trail: Uint8Array): ReadonlyArray<AuditRecord.AuditRecord | undefined> =>
  split(trail).lines.map(peekLine)

/** The record in a line, unverified; undefined when it is none. */
export const peekLine = (line: Line): AuditRecord.AuditRecord | undefined => {
  const parsed = parse(line)
  return parsed === undefined ? undefined : Either.getOrUndefined(decodeRecord(parsed.members))
}

/** The contents of a head, unverified; undefined when it is none. */
export const peekHead = (head: Uint8Array): Head | undefined => {
  const [line] = split(head).lines
  return line === undefined ? undefined : headOf(line)
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Checks that the head was made for this chain, with the same number of records. */
const compare = (file: string, chain: Summary, head: Head): Either.Either<Summary, AuditBroken> => {
  const { count, hash, sessionId } = head
  const broken = (fields: Omit<ConstructorParameters<typeof AuditBroken>[0], "file">) =>
    Either.left(new AuditBroken({ file, ...fields }))
  if (sessionId !== chain.sessionId) return broken({ problem: "foreign", record: 1 })
  if (count > chain.last.seq) {
    return broken({ problem: "cut", record: chain.last.seq + 1, records: count - chain.last.seq })
  }
  if (chain.sealed !== hash) return broken({ problem: "replaced", record: count })
  const unsealed = chain.last.seq - count
  return unsealed > 0 || chain.torn > 0
    ? broken({ problem: "unsealed", record: count + 1, records: unsealed, torn: chain.torn })
    : Either.right(chain)
}

const hashOf = (text: string, key: Key | undefined): string =>
  key === undefined ? Digest.sha256(text) : Digest.hmacSha256(Redacted.value(key), text)

/** The hash comes last, outside of the text that it covers. */
const sealedText = (body: string, name: "hash" | "seal", hash: string): string =>
  `${body.slice(0, -1)},"${name}":"${hash}"}`

const lineEnd = 10

const noRecords = (summary: Summary): Chain => ({ ...summary, records: [] })

export interface Line {
  /** Undefined when it is not UTF-8. */
  readonly text: string | undefined
}

// A byte order mark or malformed bytes must not be read as other text.
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** A line without its end. */
export const lineOf = (bytes: Uint8Array): Line => ({
  text: Either.getOrUndefined(Either.try(() => utf8.decode(bytes)))
})

/** Whole lines, and how many bytes follow the last line end. */
const split = (bytes: Uint8Array): { readonly lines: ReadonlyArray<Line>; readonly torn: number } => {
  const lines: Array<Line> = []
  let from = 0
  for (let to = bytes.indexOf(lineEnd); to >= 0; to = bytes.indexOf(lineEnd, from)) {
    lines.push(lineOf(bytes.subarray(from, to)))
    from = to + 1
  }
  return { lines, torn: bytes.length - from }
}

interface Parsed {
  readonly members: { readonly [name: string]: unknown }
  /** The text that the hash covers. */
  readonly body: string
}

/** A line's members; undefined when the line is no such object. */
const parse = ({ text }: Line): Parsed | undefined => {
  if (text === undefined) return undefined
  // A value that is nested too deep cannot be walked: no record either.
  const parsed = Either.try((): Parsed | undefined => {
    const members: unknown = JSON.parse(text)
    if (typeof members !== "object" || members === null || Array.isArray(members)) return undefined
    const { hash: _, ...rest } = { hash: "", ...members }
    return { members: { ...members }, body: Digest.canonicalJson(rest) }
  })
  return Either.getOrUndefined(parsed)
}

const headOf = (line: Line): Head | undefined => {
  const parsed = parse(line)
  return parsed === undefined ? undefined : Either.getOrUndefined(decodeHead(parsed.members))
}

const keyProblemOf = (
  first: { readonly [name: string]: unknown },
  key: Key | undefined
): AuditBroken["problem"] | undefined => {
  if (first["_tag"] !== "Opened") return undefined
  if (first["key"] === undefined) return key === undefined ? undefined : "keyless"
  if (key === undefined) return "keyNeeded"
  return first["key"] === fingerprint(key) ? undefined : "keyWrong"
}

const decodeRecord = Lazy.make(() => Schema.decodeUnknownEither(AuditRecord.AuditRecord, { onExcessProperty: "error" }))
const decodeHead = Lazy.make(() => Schema.decodeUnknownEither(Head))
