import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import * as FastCheck from "fast-check"
import * as SessionSummary from "../../src/journal/SessionSummary.js"
import * as JournalSample from "../kit/JournalSample.js"

const bySchema = Schema.decodeUnknownEither(Schema.parseJson(SessionSummary.SessionSummary))

describe("a stored summary", () => {
  it("is read as the schema reads it, whole or damaged anywhere", () => {
    const wrong = FastCheck.constantFrom<unknown>(undefined, null, 1, "text", true, [], [{}], {}, { turn: 1 })
    FastCheck.assert(
      FastCheck.property(
        JournalSample.journals,
        FastCheck.nat(),
        wrong,
        FastCheck.boolean(),
        (entries, at, value, damaged) => {
          const summary = {
            ...SessionSummary.after(SessionSummary.empty(JournalSample.root, 1), entries),
            ...(at % 2 === 0 ? { workspace: "/home/ada/shop" } : {}),
            ...(at % 3 === 0 ? { forkOf: { rootSessionId: "ses_parent", turn: 2 } } : {})
          }
          const names = Object.keys(summary)
          const changed = damaged ? { ...summary, [names[at % names.length] ?? ""]: value } : summary
          const text = JSON.stringify(changed)
          assert.deepStrictEqual(SessionSummary.parse(text), Either.getOrUndefined(bySchema(text)))
        }
      )
    )
    for (const text of ["", "{", "null", "[]", "1", '"x"']) assert.isUndefined(SessionSummary.parse(text))
  })
})
