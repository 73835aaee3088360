import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as AgentEvent from "../../src/event/AgentEvent.js"
import * as PermissionCommand from "../../src/permission/PermissionCommand.js"
import * as PermissionFile from "../../src/permission/PermissionFile.js"
import type { PolicySource } from "../../src/permission/PolicySource.js"
import * as SessionRule from "../../src/permission/SessionRule.js"
import * as ToolRegistry from "../../src/tool/ToolRegistry.js"
import * as Kit from "../kit/gate.js"

const setUp = (policy: PolicySource = {}) =>
  Effect.map(Kit.make({ policy }), (kit) => {
    const target = { state: kit.state, policy: kit.policy, tools: kit.tools, sessionId: Kit.ses("root") }
    return {
      ...kit,
      run: (line: string) => PermissionCommand.run(line, target),
      lines: (line: string) => Either.getOrThrow(PermissionCommand.run(line, target)).lines,
      left: (line: string) => Either.getOrThrow(Either.flip(PermissionCommand.run(line, target)))
    }
  })

describe("permissions", () => {
  it.effect("shows the rules in force, and their origin; nothing said means show", () =>
    Effect.gen(function* () {
      const { lines } = yield* setUp({
        guards: { deny: { patterns: ["rm -rf *"] } },
        blacklist: { arguments: ["--force"] },
        whitelist: { tools: ["look"] }
      })
      lines("allow git *")
      lines("deny  write ")
      const shown = [
        "mode: ask",
        "suspended: no",
        "guards:",
        "  pattern rm -rf *",
        "denied in this session:",
        "  write",
        "denied by policy:",
        "  argument --force",
        "allowed in this session:",
        "  git *",
        "allowed by policy:",
        "  tool look",
        "never ask:",
        "  note",
        "settings of the policy:",
        '  defaultPolicy: "ask" (default)',
        '  whitelist.sandboxed: "reading" (default)',
        '  guards.sanitize.pathScope: "ask" (default)'
      ]
      assert.deepStrictEqual(lines(""), shown)
      assert.deepStrictEqual(lines("  show "), shown)
    })
  )

  it.effect("says in words what was remembered, and its text where that is needed to take it back", () =>
    Effect.gen(function* () {
      const { lines, state } = yield* setUp({ whitelist: { tools: ["look"] } })
      const kept = ["(reading) git *", '(in "web") (reading) ls *', "npm test", '(in "web") npm test', "$ ls *", "rm *"]
      for (const entry of kept) state.allow(entry)
      const shown = lines("show")
      const from = shown.indexOf("allowed in this session:") + 1
      assert.deepStrictEqual(shown.slice(from, from + kept.length), [
        "  git commands that only read, kept as (reading) git *",
        '  ls commands that only read, in "web", kept as (in "web") (reading) ls *',
        "  exactly `npm test`",
        '  exactly `npm test`, in "web", kept as (in "web") npm test',
        "  exactly `ls *`, kept as $ ls *",
        "  rm *"
      ])
      for (const entry of kept) lines(`remove ${entry}`)
      assert.notInclude(lines("show"), "allowed in this session:")
    })
  )

  it.effect("refuses a rule about a tool that there is not, and takes every command", () =>
    Effect.gen(function* () {
      const { left, lines, state, tools } = yield* setUp()
      assert.include(left("deny wriet(path=*)"), "did you mean write?")
      assert.include(left("allow nothing(like=this)"), "There is no tool nothing. There are: ")
      const known = tools.entries.map(({ name }) => name)
      for (const rule of [
        ...known,
        ...known.map((name) => `${name}(*)`),
        "wri*(path=*)",
        "*(path=a)",
        "mcp__late(a=1)"
      ])
        lines(`deny ${rule}`)
      for (const command of ["wriet", "git *", "f() { rm *", "(cd a; make)", "echo $(date)"]) lines(`deny ${command}`)
      assert.isAbove(state.snapshot().deny.length, 10)
      // Without a tool that runs commands, a word is a tool's name or covers nothing.
      const plain = { get: tools.get, entries: tools.entries.filter(({ shellCommand }) => shellCommand === undefined) }
      assert.isBelow(plain.entries.length, tools.entries.length)
      assert.isTrue(Either.isLeft(SessionRule.of("deny", "wriet", plain)))
      for (const { name } of plain.entries)
        assert.deepStrictEqual(SessionRule.of("deny", name, plain), Either.right(name))
    })
  )

  it.effect("takes back a rule of this session or of the project, and says where the others stand", () =>
    Effect.gen(function* () {
      const { left, lines, policy, state, tools } = yield* setUp()
      lines("allow git *")
      assert.deepStrictEqual(lines("remove git *"), ["Forgotten: git *"])
      assert.deepStrictEqual(state.snapshot().allow, [])
      assert.include(left("remove git *"), "have no rule")
      assert.include(left("remove"), "needs a rule")
      const entries = new Set(["npm test", "ls"])
      const revoke = (entry: string) =>
        entry === "ls" ? Effect.fail("The disk is full.") : Effect.sync(() => void entries.delete(entry))
      const target = {
        state,
        policy: { ...policy, project: { entries: () => entries, revoke } },
        tools,
        sessionId: Kit.ses("root"),
        guards: []
      }
      const shown = Either.getOrThrow(yield* PermissionCommand.answer("show", target)).lines
      assert.includeMembers([...shown], ["allowed in this project, in every session:", "  exactly `npm test`", "  ls"])
      assert.deepStrictEqual(
        yield* PermissionCommand.answer("remove npm test", target),
        Either.right({
          lines: ["Removed this project's rule: npm test"],
          changed: false
        })
      )
      assert.deepStrictEqual(yield* PermissionCommand.answer("remove ls", target), Either.left("The disk is full."))
      assert.deepStrictEqual([...entries], ["ls"])
    })
  )

  it.effect("tells what would happen to a call, by which rule, and changes nothing", () =>
    Effect.gen(function* () {
      const { events, lines, run } = yield* setUp({
        guards: { deny: { patterns: ["rm -rf *"] } },
        blacklist: { patterns: ["sudo *"] }
      })
      lines("allow git *")
      const table: ReadonlyArray<readonly [string, string]> = [
        ["check shell git status", "allow (session_whitelist): git *"],
        ["check shell git status; ls", "ask (default): the default is ask"],
        ["check shell   rm -rf / ", "deny (guard): rm -rf *"],
        ["check shell sudo ls", "deny (blacklist): sudo *"],
        ["check shell { git status; }", "allow (session_whitelist): git *"],
        ["check shell f() { git status; }", "ask (default): the default is ask"],
        ["check shell { rm -rf /; }", "deny (guard): rm -rf *"],
        ['check shell {"command": "git log"}', "allow (session_whitelist): git *"],
        ["check note", "allow (auto_approved): the tool asks nobody"],
        ['check write {"path": "a", "content": "b"}', "ask (default): the default is ask"]
      ]
      for (const [line, expected] of table) {
        assert.deepStrictEqual(run(line), Either.right({ lines: [expected], changed: false }), line)
      }
      assert.deepStrictEqual(events, [])
    })
  )

  it.effect("says why in words for a person, none of which is a name of ours", () =>
    Effect.gen(function* () {
      const { lines, policy, state, tools } = yield* setUp({
        guards: { deny: { patterns: ["rm -rf *"] } },
        blacklist: { patterns: ["sudo *"] },
        whitelist: { patterns: ["ls"] }
      })
      const project = { entries: () => new Set(["(reading) cat *"]), revoke: () => Effect.void }
      const target = { state, policy: { ...policy, project }, tools, sessionId: Kit.ses("root"), guards: [] }
      const run = (line: string) => PermissionCommand.run(line, target)
      lines("allow git *")
      lines("deny git push")
      assert.deepStrictEqual(lines("allow npm test"), ["Allowed for this session: exactly `npm test`"])
      const table: ReadonlyArray<readonly [string, string]> = [
        ["shell git status", "Allowed by a rule of this session: git *"],
        ["shell git push", "Denied by a rule of this session: `git push`, also inside a longer one"],
        ["shell npm test", "Allowed by a rule of this session: exactly `npm test`"],
        ["shell git log && npm test", "Allowed by a rule of this session: git * + exactly `npm test`"],
        ["shell cat a", "Allowed by a rule of this project: cat commands that only read"],
        ["shell ls", "Allowed by a rule: ls"],
        ["shell sudo ls", "Denied by a rule: sudo *"],
        ["shell make", "Asked about: the default is ask"],
        ['note {"n": 1}', "Allowed: the tool asks nobody"]
      ]
      for (const [call, expected] of table) {
        const wanted = Either.right({ lines: [expected], changed: false })
        assert.deepStrictEqual(run(`why ${call}`), wanted)
        assert.deepStrictEqual(yield* PermissionCommand.answer(`why ${call}`, target), wanted)
      }
      assert.deepStrictEqual(
        yield* PermissionCommand.answer("why shell rm -rf /", target),
        Either.right({ lines: ["Denied, and no rule can allow it: forbidden by rule rm -rf *"], changed: false })
      )
      for (const mode of ["allow", "deny", "plan"]) {
        lines(`mode ${mode}`)
        for (const call of ["shell make", 'note {"n": 1}', 'write {"path": "a", "content": "b"}', "write {}"]) {
          const { lines: said } = Either.getOrThrow(yield* PermissionCommand.answer(`why ${call}`, target))
          assert.match(said[0] ?? "", /^(?:Allowed|Denied|Asked|The arguments do not fit)\b/, call)
          assert.isFalse(
            AgentEvent.PermissionMethod.literals.some((method) => said.join().includes(`(${method})`)),
            call
          )
          // Each of them is a row.
          assert.notInclude(said.join(""), "\n", call)
        }
      }
      // What a model could do instead is for the model.
      assert.deepStrictEqual(
        yield* PermissionCommand.answer('why write {"path": "a", "content": "b"}', target),
        Either.right({
          lines: ["Denied: plan mode: write is not run, because it may change something."],
          changed: false
        })
      )
      assert.isTrue(PermissionCommand.isQuestion("why shell ls"))
    })
  )

  it.effect("changes this session: allow, deny, default, suspend, resume, clear", () =>
    Effect.gen(function* () {
      const { check, lines, resolved, run } = yield* setUp()
      const next = (n: number) =>
        Effect.map(check("deploy", { n }), () => {
          const event = resolved().at(-1)
          return event?.method
        })
      assert.isTrue(Either.getOrThrow(run("allow deploy")).changed)
      assert.strictEqual(yield* next(1), "session_whitelist")
      lines("deny deploy")
      assert.strictEqual(yield* next(1), "session_blacklist")
      lines("suspend all")
      assert.strictEqual(yield* next(1), "allow_all")
      assert.deepStrictEqual(lines("status"), ["mode: ask", "suspended: all"])
      assert.deepStrictEqual(lines("resume"), ["mode: ask", "suspended: no"])
      assert.strictEqual(yield* next(1), "session_blacklist")
      for (const line of ["suspend", "suspend idle"]) {
        lines(line)
        assert.strictEqual(yield* next(1), "idle_suspension")
        lines("resume")
      }
      lines("suspend turn")
      assert.strictEqual(yield* next(1), "turn_suspension")
      lines("resume")
      lines("clear")
      lines("default deny")
      assert.strictEqual(yield* next(1), "mode")
      assert.deepStrictEqual(lines("status"), ["mode: deny", "suspended: no"])
    })
  )

  it.effect("takes blanks as a shell does, and no others", () =>
    Effect.gen(function* () {
      const { left, lines, state, policy } = yield* setUp()
      lines("  allow \t npm   run\tx  ")
      lines("deny git   push*")
      lines("allow cat\u00a0x y")
      assert.deepStrictEqual(state.status(policy, Kit.ses("root")).allow, ["npm run x", "cat\u00a0x y"])
      assert.deepStrictEqual(state.status(policy, Kit.ses("root")).deny, ["git push*"])
      assert.deepStrictEqual(lines("check shell git push x"), ["deny (session_blacklist): git push*"])
      assert.include(left("allow\u00a0npm run x"), 'There is no "permissions allow\u00a0npm".')
    })
  )

  it.effect("does not allow everything by a star, and says what a pattern does not allow", () =>
    Effect.gen(function* () {
      const { left, lines } = yield* setUp()
      assert.include(left("allow *"), "use mode allow")
      assert.include(lines("allow n*m")[1], "allows no command")
      assert.deepStrictEqual(lines("allow git *"), ["Allowed for this session: git *"])
      assert.deepStrictEqual(lines("deny *"), ["Denied for this session: *"])
    })
  )

  it.effect("says once of a pattern with a star that the program's options can start others", () =>
    Effect.gen(function* () {
      const { lines } = yield* setUp({ whitelist: { patterns: ["kubectl get*", "ls*"] } })
      const caution = (program: string) => `Options of \`${program}\` can start other programs.`
      assert.deepStrictEqual(lines("allow helm template*"), [
        "Allowed for this session: helm template*",
        caution("helm")
      ])
      assert.deepStrictEqual(lines("allow just*"), ["Allowed for this session: just*", caution("just")])
      assert.deepStrictEqual(lines("check shell helm template x --post-renderer ./evil"), [
        "allow (session_whitelist): helm template*",
        caution("helm")
      ])
      assert.deepStrictEqual(lines("why shell kubectl get x --kubeconfig y && kubectl get z | ls"), [
        "Allowed by a rule: kubectl get* + ls*",
        caution("kubectl")
      ])
      for (const line of ["allow mvn test", "allow cat *", "allow git log*", "deny helm*", "check shell ls -l"])
        assert.lengthOf(lines(line), 1, line)
    })
  )

  it.effect("says what is wrong with a line, and how it goes", () =>
    Effect.gen(function* () {
      const { left } = yield* setUp()
      const table: ReadonlyArray<readonly [string, string]> = [
        ["allow", "Name a tool, a pattern or a command."],
        ["deny  ", "Name a tool, a pattern or a command."],
        ["default maybe", "permissions default takes ask, plan, deny, allow."],
        ["default", "permissions default takes ask, plan, deny, allow."],
        ["suspend now", "permissions suspend takes turn, idle or all."],
        [
          "check",
          "permissions check needs a tool: deploy, note, look, write, shell, boxed, finish, shown, brief, broken."
        ],
        [
          "why git push",
          "There is no tool git. There are: deploy, note, look, write, shell, boxed, finish, shown, brief, broken. " +
            "For a command: permissions why shell git push"
        ],
        ["check shel ls", "There is no tool shel. Did you mean shell?"],
        ["check write {", "The arguments are no JSON: the text ends too early, after character 1."]
      ]
      for (const [line, expected] of table) assert.strictEqual(left(line), expected, line)
      assert.include(left("permit everything"), 'There is no "permissions permit".')
      assert.include(left("permit everything"), "permissions resume")
    })
  )

  it.effect("names the files that say a rule or a setting, and none that is ignored for what it allows", () =>
    Effect.gen(function* () {
      const { state, tools } = yield* setUp()
      const user: PolicySource = {
        whitelist: { tools: ["look"], readonly: true },
        blacklist: { patterns: ["sudo *"] },
        defaultPolicy: "ask",
        approvals: [{ patterns: ["deploy*"], quorum: 2 }]
      }
      const workspace: PolicySource = {
        whitelist: { tools: ["look", "write"] },
        blacklist: { patterns: ["sudo *", "make *"] },
        guards: { sanitize: { metacharacters: true, pathScope: { outside: "deny", roots: ["/x"] } } },
        approvals: [{ patterns: ["release*"] }]
      }
      const shown = (trusted: boolean) => {
        const merged = PermissionFile.merge(PermissionFile.policy(user), PermissionFile.policy(workspace), { trusted })
        const files = [
          { path: "/home/p.json", source: user },
          { path: "/ws/p.json", source: workspace, ignored: !trusted }
        ]
        const policy = { ...merged, files }
        const { lines } = Either.getOrThrow(
          PermissionCommand.run("show", { state, policy, tools, sessionId: Kit.ses("root") })
        )
        return lines.slice(lines.indexOf("reserved:")).map((line) => line.trim())
      }
      const both = "(/home/p.json, /ws/p.json)"
      const denied = [
        "reserved:",
        "pattern deploy*: needs 2 people (/home/p.json)",
        "pattern release*: needs a person (/ws/p.json)",
        "denied by policy:",
        `pattern sudo * ${both}`,
        "pattern make * (/ws/p.json)",
        "allowed by policy:"
      ]
      const settings = [
        "never ask:",
        "note",
        "settings of the policy:",
        'defaultPolicy: "ask" (/home/p.json)',
        "whitelist.readonly: true (/home/p.json)",
        'whitelist.sandboxed: "reading" (default)',
        "guards.sanitize.metacharacters: true (/ws/p.json)"
      ]
      assert.deepStrictEqual(shown(true), [
        ...denied,
        `tool look ${both}`,
        "tool write (/ws/p.json)",
        ...settings,
        'guards.sanitize.pathScope: {"outside":"deny","roots":["/x"]} (/ws/p.json)'
      ])
      assert.deepStrictEqual(shown(false).slice(0, -1), [...denied, "tool look (/home/p.json)", ...settings])
    })
  )

  it.effect(
    "says of a reserved call what is demanded, unless it is denied, and of another that a model may decide",
    () =>
      Effect.gen(function* () {
        const { lines, policy, state, tools } = yield* setUp({
          approvals: [{ patterns: ["deploy*"], quorum: 2 }],
          blacklist: { patterns: ["deploy --force*"] },
          delegated: { patterns: ["npm test*"] }
        })
        assert.deepStrictEqual(lines("check shell deploy now"), ["ask (approvals): needs 2 people (deploy*)"])
        assert.deepStrictEqual(lines("why shell deploy now"), ["Asked, and reserved: needs 2 people (deploy*)"])
        assert.deepStrictEqual(lines("why shell deploy --force"), ["Denied by a rule: deploy --force*"])
        const target = { state, policy, tools, sessionId: Kit.ses("root"), guards: [] }
        const answered = (line: string) =>
          Effect.map(PermissionCommand.answer(line, target), (found) =>
            Either.match(found, { onLeft: (why) => [why], onRight: ({ lines }) => lines })
          )
        assert.deepStrictEqual(yield* answered("check shell npm test"), [
          "ask (default): the default is ask",
          "a model may decide it first: npm test*"
        ])
        assert.deepStrictEqual(yield* answered("check shell make"), ["ask (default): the default is ask"])
      })
  )

  it.effect("says what is missing behind the name of a tool, and what cannot be decided", () =>
    Effect.gen(function* () {
      const { lines, policy, state, tools } = yield* setUp()
      const target = { state, policy, tools, sessionId: Kit.ses("root"), guards: [] }
      const left = (line: string) => Effect.flip(Effect.flatten(PermissionCommand.answer(line, target)))
      assert.match(
        yield* left("why write"),
        /^permissions why write needs the arguments of the call behind it, as JSON: /
      )
      assert.strictEqual(
        yield* left("check shell"),
        "permissions check shell needs a command behind it, such as: permissions check shell git status"
      )
      assert.include(yield* left("check write {"), "the text ends too early")
      assert.include(yield* left("check wriet {}"), "Did you mean write?")
      const plain = { ...target, tools: ToolRegistry.fromEntries(tools.entries.filter((one) => !one.shellCommand)) }
      const none = Either.getOrThrow(Either.flip(PermissionCommand.run("why git push", plain)))
      assert.notInclude(none, "For a command")
      const long = `check shell echo ${"x".repeat(200_000)}`
      assert.match(lines(long)[0] ?? "", /^deny \(pre_validation\): /)
      assert.match(lines(long.replace("check", "why"))[0] ?? "", /^Not possible: /)
      assert.deepStrictEqual(lines("mode"), ["mode: ask"])
    })
  )

  it.effect("takes a rule of the project back from this session, too", () =>
    Effect.gen(function* () {
      const { lines, policy, state, tools } = yield* setUp()
      lines("allow make")
      const entries = new Set(["make"])
      const project = { entries: () => entries, revoke: () => Effect.void, file: "/home/rules.json" }
      const target = { state, policy: { ...policy, project }, tools, sessionId: Kit.ses("root"), guards: [] }
      const shown = Either.getOrThrow(PermissionCommand.run("show", target)).lines
      assert.include(shown, "  make (/home/rules.json)")
      const removed = yield* PermissionCommand.answer("remove make", target)
      assert.deepStrictEqual(removed, Either.right({ lines: ["Removed this project's rule: make"], changed: true }))
      assert.deepStrictEqual(state.snapshot().allow, [])
    })
  )
})
