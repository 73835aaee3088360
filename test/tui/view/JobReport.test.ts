import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as JobReport from "../../../src/tui/view/JobReport.js"

const known = ["job_1", "job_2", "job_12", "job_13"]
const named = (word: string, jobs: ReadonlyArray<string> = known) => Either.merge(JobReport.named(word, jobs))

describe("a job that a person names", () => {
  for (const [word, meant] of [
    ["job_1", "job_1"],
    ["1", "job_1"],
    ["12", "job_12"],
    ["job_2", "job_2"],
    ["2", "job_2"]
  ] as const)
    it(`is ${meant} as ${word}`, () => assert.strictEqual(named(word), meant))

  it("is found by a beginning that no other has, and several are named", () => {
    assert.strictEqual(named("jo", ["job_7"]), "job_7")
    assert.strictEqual(named("jo"), 'Several jobs begin with "jo": job_1, job_2, job_12, job_13.')
    assert.strictEqual(named("job_1", ["job_12", "job_13"]), 'Several jobs begin with "job_1": job_12, job_13.')
  })

  it("that is not there is told with those that are, and with what was probably meant", () => {
    const there = "There are: job_1, job_2, job_12, job_13."
    assert.strictEqual(named("9"), `There is no background job "9". ${there}`)
    assert.strictEqual(named("job_9"), `There is no background job "job_9". ${there}`)
    assert.strictEqual(named("job-2"), `There is no background job "job-2". Did you mean /jobs job_2? ${there}`)
    assert.strictEqual(named("stpo"), `There is no background job "stpo". Did you mean /jobs stop? ${there}`)
    assert.strictEqual(named("\x1b[2J", ["job_1"]), 'There is no background job "\\u001b[2J". There are: job_1.')
    assert.strictEqual(named("1", []), 'There is no background job "1". There are none.')
  })
})
