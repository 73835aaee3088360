import { assert, describe, it } from "@effect/vitest"
import * as fc from "effect/FastCheck"
import type { SessionId, ToolCallId } from "../../src/core/Id.js"
import * as Origin from "../../src/core/Origin.js"
import { Delegations, type Delegation } from "../../src/turn/Delegation.js"

const delegation = (name: string, precedence: number | undefined, receives: boolean): Delegation => ({
  toolCallId: `call_${name}` as ToolCallId,
  precedence,
  session: {
    origin: { ...Origin.outside, sessionId: name as SessionId },
    isReceiving: () => receives,
    delegations: new Delegations()
  }
})

describe("children that work under calls", () => {
  const child = fc.record({
    name: fc.constantFrom("a", "b", "c"),
    precedence: fc.constantFrom(undefined, 1, 2, 3),
    receives: fc.boolean(),
    ends: fc.boolean()
  })

  it("hear words by precedence, the latest first, as long as they work and read", () => {
    fc.assert(
      fc.property(fc.array(child, { maxLength: 8 }), (children) => {
        const delegations = new Delegations()
        assert.deepStrictEqual(delegations.running, [])
        const all = children.map(({ name, precedence, receives }) => delegation(name, precedence, receives))
        for (const one of all) delegations.add(one)
        for (const [at, { ends }] of children.entries()) if (ends) delegations.delete(all[at] as Delegation)
        const running = all.filter((_, at) => children[at]?.ends === false)
        assert.deepStrictEqual(delegations.running, running)
        for (const name of ["a", "b", "c", "d"] as ReadonlyArray<string>) {
          const latest = running.filter(({ session }) => session.origin.sessionId === name).at(-1)
          assert.strictEqual(delegations.of(name as SessionId), latest)
        }
        const hearing = running.filter(({ precedence, session }) => precedence !== undefined && session.isReceiving())
        const least = Math.min(...hearing.map(({ precedence }) => precedence ?? Infinity))
        const first = hearing.filter(({ precedence }) => precedence === least).at(-1)
        assert.strictEqual(delegations.first()?.session, first?.session)
      })
    )
  })
})
