import { assert, describe, it } from "@effect/vitest"
import * as fc from "effect/FastCheck"
import { AgentPaths } from "../../src/subagent/AgentPaths.js"

describe("the paths of children", () => {
  it("are numbered from the second of a name on", () => {
    const paths = new AgentPaths("main")
    const names = ["helper", "helper", "scout", "helper"]
    assert.deepStrictEqual(
      names.map((name) => paths.next(name)),
      ["main/helper", "main/helper-2", "main/scout", "main/helper-3"]
    )
  })

  it("leave out what a child is called by itself, or was called in another process", () => {
    const paths = new AgentPaths("main")
    assert.strictEqual(paths.next("helper-2"), "main/helper-2")
    paths.occupy("main/helper")
    paths.occupy("main/helper-4")
    assert.deepStrictEqual(
      Array.from({ length: 3 }, () => paths.next("helper")),
      ["main/helper-3", "main/helper-5", "main/helper-6"]
    )
    assert.strictEqual(paths.next("helper-2"), "main/helper-2-2")
  })

  it("are never given twice, and are the lowest that is free", () =>
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.constantFrom("a", "a-2", "a-3", "a-2-2", "b"), fc.boolean()), { maxLength: 40 }),
        (wanted) => {
          const paths = new AgentPaths("p")
          const taken = new Set<string>()
          for (const [name, before] of wanted) {
            let lowest = `p/${name}`
            if (before) paths.occupy(lowest)
            else {
              for (let number = 2; taken.has(lowest); number++) lowest = `p/${name}-${number}`
              assert.strictEqual(paths.next(name), lowest)
            }
            taken.add(lowest)
          }
        }
      )
    ))
})
