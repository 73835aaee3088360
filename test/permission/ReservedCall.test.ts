import { assert, describe, it } from "@effect/vitest"
import type * as Ballot from "../../src/interaction/Ballot.js"
import type * as Interaction from "../../src/interaction/Interaction.js"
import type { ToolCallId } from "../../src/core/Id.js"
import * as ApprovalText from "../../src/permission/ApprovalText.js"
import * as CompiledPolicy from "../../src/permission/CompiledPolicy.js"
import * as ReservedCall from "../../src/permission/ReservedCall.js"

const ops: Interaction.Need = { quorum: 2, roles: ["ops"], members: ["ada", "grace"], deny: "one", rule: "deploy*" }
const call = (params: unknown) => ({ id: "c1" as ToolCallId, name: "shell", params })
const reserved: Ballot.Reserved = { needs: ReservedCall.needsOf(call({ command: "deploy" }), [ops]) }

const allow = { decision: "allow", scope: "once" } as const
const deny = { decision: "deny", scope: "once" } as const
const edit = (command: string) => ({ decision: "edit", editedArguments: { command } }) as const
const vote = (by: string, answer: Ballot.Cast["answer"], roles?: ReadonlyArray<string>): Ballot.Cast =>
  roles === undefined ? { by, answer } : { by, answer, roles }

describe("the votes on a reserved call", () => {
  it("come to what enough people say about exactly the same arguments", () => {
    const { count } = ReservedCall
    const voted = (word: "allow" | "deny" | "edit", ...names: ReadonlyArray<string>) =>
      names.map((by) => ({ by, vote: word }))
    const undecided = { _tag: "Undecided" } as const
    assert.deepStrictEqual(count(reserved, []), undecided)
    assert.deepStrictEqual(count(reserved, [vote("ada", allow)]), undecided)
    assert.deepStrictEqual(count(reserved, [vote("ada", allow), vote("eve", allow)]), undecided)
    assert.deepStrictEqual(count(reserved, [vote("ada", allow), vote("grace", edit("deploy x"))]), undecided)
    assert.deepStrictEqual(count(reserved, [vote("ada", allow), vote("mary", allow, ["ops"])]), {
      _tag: "Answered",
      answer: allow,
      given: { by: "ada, mary", how: "answered", votes: voted("allow", "ada", "mary") },
      voters: [{ by: "ada" }, { by: "mary", roles: ["ops"] }]
    })
    const denied = count(reserved, [vote("ada", deny), vote("grace", allow)])
    assert.deepInclude(denied, { _tag: "Answered", voters: [{ by: "ada" }] })
    assert(denied._tag === "Answered")
    assert.strictEqual(denied.answer.decision, "deny")
    const x = edit("deploy x")
    assert.deepStrictEqual(count(reserved, [vote("ada", x), vote("mary", x, ["ops"])]), {
      _tag: "Edited",
      changes: { command: "deploy x" },
      given: { by: "ada, mary", how: "answered", votes: voted("edit", "ada", "mary") },
      votes: [vote("ada", allow), vote("mary", allow, ["ops"])]
    })
  })

  it("are those of people: an answer of one is one, and an answer that no person gave is none", () => {
    const answered = { answer: allow, by: "ada", how: "answered" as const }
    assert.deepStrictEqual(ReservedCall.votesIn(answered), [vote("ada", allow)])
    assert.deepStrictEqual(ReservedCall.votesIn({ ...answered, roles: ["ops"] }), [vote("ada", allow, ["ops"])])
    const both = [vote("ada", allow), vote("grace", deny)]
    assert.deepStrictEqual(ReservedCall.votesIn({ ...answered, votes: both }), both)
    for (const how of ["timeout", "yolo", "model", "recheck"] as const)
      assert.deepStrictEqual(ReservedCall.votesIn({ ...answered, how, votes: both }), [])
  })

  it("that do not suffice are told with what is demanded", () => {
    const said = (votes: ReadonlyArray<Ballot.Cast>, how: "answered" | "yolo") =>
      ReservedCall.missing([ops], votes, { how })
    assert.strictEqual(said([], "answered"), "needs 2 of: ops (deploy*)")
    assert.strictEqual(said([], "yolo"), "needs 2 of: ops (deploy*); yolo is nobody")
    assert.strictEqual(said([vote("ada", allow)], "yolo"), "needs 2 of: ops (deploy*); ada allowed it")
  })

  it("count for one tool with one list of arguments", () => {
    const digest = (name: string, params: unknown) => ReservedCall.needsOf({ ...call(params), name }, [ops]).digest
    const all = [
      digest("shell", { command: "deploy" }),
      digest("shell", { command: "deploy now" }),
      digest("other", { command: "deploy" }),
      digest("shell", {}),
      digest("shell", undefined)
    ]
    assert.strictEqual(new Set(all).size, all.length)
    assert.strictEqual(digest("shell", undefined), digest("shell", null))
  })
})

describe("rules that reserve calls", () => {
  it("are listed with who may vote, and how many have to deny", () => {
    const { approvals = [] } = CompiledPolicy.make({
      roles: { ops: ["ada", "grace"] },
      approvals: [
        { patterns: ["deploy*"], quorum: 2, roles: ["ops"] },
        { tools: ["pay"], quorum: 3, deny: "quorum" },
        { tools: ["send"], deny: "quorum" }
      ]
    })
    assert.deepStrictEqual(ApprovalText.list(approvals), [
      "pattern deploy*: needs 2 of: ops (ada, grace)",
      "tool pay: needs 3 people; as many have to deny",
      "tool send: needs a person"
    ])
  })
})
