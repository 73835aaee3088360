/** What is wrong with an audit trail, and in which record. */
import * as Schema from "effect/Schema"

/** One thing that can be wrong; `AuditBroken.message` says each in a sentence. */
const Problem = Schema.Literal(
  "missing",
  "unreadable",
  "unknown",
  "version",
  "changed",
  "misplaced",
  "unlinked",
  "cut",
  "replaced",
  "unsealed",
  "foreign",
  "headMissing",
  "headChanged",
  "keyNeeded",
  "keyWrong",
  "keyless",
  "inaccessible"
)
export type Problem = typeof Problem.Type

/**
 * A trail that does not verify.
 *
 * `unsealed` is the one problem that an honest crash leaves: every record chains, and the head covers all but the last
 * ones. The process died after writing them and before sealing them, so what they decided took no effect — or somebody
 * added them. Without a key nobody can tell which; it is for a person to judge.
 *
 * @since 0.1.0
 * @category errors
 */
export class AuditBroken extends Schema.TaggedError<AuditBroken>("assent/audit/AuditBroken")("AuditBroken", {
  /** The trail; or the head, if the head is wrong. */
  file: Schema.String,
  problem: Problem,
  /** 1-based number of the record, which is also its line. */
  record: Schema.optional(Schema.Number),
  /** The number of affected records, where there are several. */
  records: Schema.optional(Schema.Number),
  /** The number that was found. */
  found: Schema.optional(Schema.Number),
  /** Bytes of a half-written record at the end. */
  torn: Schema.optional(Schema.Number),
  /** The file system's error. */
  reason: Schema.optional(Schema.String)
}) {
  override get message(): string {
    return `${this.file}: ${sentence(this)}`
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const sentence = (broken: AuditBroken): string => {
  const { found, reason } = broken
  const record = `record ${broken.record}`
  const torn = broken.torn ?? 0
  switch (broken.problem) {
    case "missing":
      return broken.records === undefined
        ? "there is no such trail."
        : `the trail is gone, with its ${broken.records} records. If you removed it on purpose, remove its head too.`
    case "unreadable":
      return `${record} is no record: that line was changed or added.`
    case "unknown":
      return `${record} is of a kind that this version does not know, or does not belong there.`
    case "version":
      return `it has format ${found}; use the version of assent that wrote it.`
    case "changed":
      return `${record} was changed.`
    case "misplaced":
      return found !== undefined && found > (broken.record ?? 0)
        ? `${record} is missing: record ${found} stands in its place.`
        : `record ${found} stands where ${record} belongs: it was moved or repeated.`
    case "unlinked":
      return `${record} does not follow from the record before it: one of the two was replaced or added.`
    case "cut":
      return `${span(broken)} missing at the end.`
    case "replaced":
      return `${record} is not the one that was sealed: it, or a record before it, was replaced.`
    case "unsealed":
      return [
        ...(broken.records === 0 ? [] : [`${span(broken)} not sealed`]),
        ...(torn === 0 ? [] : [`${torn} bytes of a half-written record follow at the end`])
      ]
        .join(", and ")
        .concat(
          ". A process that died while writing leaves that, and what it wrote took no effect; so does an addition."
        )
    case "foreign":
      return broken.record === undefined
        ? "it names another session: the head was put in the place of another."
        : `${record} names another session: the trail was put in the place of another.`
    case "headMissing":
      return "there is no such head, so Assent cannot tell whether its trail is whole."
    case "headChanged":
      return "the head was changed, or is for another key."
    case "keyNeeded":
      return "it was written with a key: give that key."
    case "keyWrong":
      return `${record} was written with another key, or was changed.`
    case "keyless":
      return `${record} names no key: it was written without one, which a key proves nothing about, or it was changed.`
    case "inaccessible":
      return `it cannot be read: ${reason}`
  }
}

const span = ({ record = 0, records = 1 }: AuditBroken): string =>
  records === 1 ? `record ${record} is` : `records ${record} to ${record + records - 1} are`
