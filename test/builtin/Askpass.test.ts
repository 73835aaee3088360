import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as fs from "node:fs"
import * as Origin from "../../src/core/Origin.js"
import * as Askpass from "../../src/builtin/Askpass.js"
import * as NodeFiles from "../../src/host/NodeFiles.js"
import * as Interaction from "../../src/interaction/Interaction.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as Confined from "../kit/Confined.js"
import { inWorkspace, type Fixture, type Needs } from "./workspaceFixture.js"

const secret = "correct-horse-battery"

interface Setting extends Fixture {
  readonly person: TestInteractor.Service
  /** Runs a command; what it printed, and its exit code. */
  readonly line: (command: string, more?: object) => Effect.Effect<readonly [string, number | null], never, Needs>
}

/** A workspace in which a person answers by a script. */
const asking =
  (
    script: TestInteractor.Script,
    use: (setting: Setting) => Effect.Effect<void, unknown, Needs | Scope.Scope>,
    {
      askpass = true,
      confined = false,
      nobody
    }: { readonly askpass?: boolean; readonly confined?: boolean; readonly nobody?: string } = {}
  ) =>
  () =>
    Effect.gen(function* () {
      const person = yield* TestInteractor.make({ script })
      const run = inWorkspace(
        (fixture) =>
          use({
            ...fixture,
            person,
            line: (command, more = {}) =>
              Effect.map(
                fixture.run({ command, ...more }),
                ({ exitCode, output }) => [output.trimEnd(), exitCode] as const
              )
          }),
        ({ outside }) => ({
          spillDirectory: outside,
          ...(confined ? { sandbox: { mode: "require", directory: `${outside}/state` } } : {})
        })
      )
      yield* run().pipe(
        Origin.withDecision({ privileges: { readOnly: false, git: false, askpass } }),
        Interactor.withInteractor(person.interactor),
        Effect.provide(Layer.fresh(NodeFiles.askpass(nobody)))
      )
    })

const kinds = [
  { name: "unconfined", confined: false },
  ...(Confined.isWanted ? [{ name: "confined", confined: true }] : [])
]

describe("what a program asks", () => {
  it("is a password, a name, or yes or no, by its words and by the hint of ssh", () => {
    const kindOf = (request: string) => Askpass.questionOf(request).kind
    assert.deepStrictEqual(Askpass.questionOf(""), { kind: "Password", prompt: "Password:", chain: [] })
    for (const prompt of [
      "[sudo] password for ada: ",
      "ada@host's password: ",
      "Password for 'https://ada@example.com': ",
      "Enter passphrase for key '/home/ada/.ssh/id_ed25519': ",
      "Enter PIN for 'yes': "
    ])
      assert.strictEqual(kindOf(`\n\n${prompt}`), "Password", prompt)
    for (const prompt of ["Username for 'https://example.com': ", "User name: "])
      assert.strictEqual(kindOf(`\n\n${prompt}`), "Ask", prompt)
    for (const prompt of [
      "The authenticity of host 'x (1.2.3.4)' can't be established.\nAre you sure you want to continue connecting (yes/no/[fingerprint])? ",
      "Please type 'yes', 'no' or the fingerprint: ",
      "Continue [Yes/No]? "
    ])
      assert.strictEqual(kindOf(`\n\n${prompt}`), "Confirm", prompt)
    assert.strictEqual(kindOf("confirm\n\nAllow use of key k?"), "Confirm")
  })

  it("is shown whole or cut, with control characters spelled out and the command behind it", () => {
    const told = Askpass.shown(
      Askpass.questionOf("\n/sudo/ma\u001bke/sh\nPass\u001b[2Kword\u202e:\nSecond line"),
      "sudo -A\n  ls \u0007"
    )
    assert.strictEqual(
      told,
      "The program sudo of a running command asks:\n  Pass␛[2Kword⟨U+202E⟩:\n  Second line\nStarted by: ma␛ke ← sh\nCommand: sudo -A ls ␇\nOnly this command gets your answer. The agent does not see it."
    )
    const long = Askpass.shown({ kind: "Ask", prompt: "x".repeat(100_000), chain: [] }, "y".repeat(100_000))
    assert.isBelow(long.length, 1_500)
    assert.notInclude(long, "Only this command")
  })
})

describe.concurrent.each(kinds)("a command that asks, $name", ({ confined }) => {
  it.scopedLive(
    "gets the password, the name and the decision of the person, and leaves nothing behind",
    asking(
      [secret, "ada", "y", "n"],
      ({ line, outside, person }) =>
        Effect.gen(function* () {
          const [output, code] = yield* line(
            'for prompt in "Password: " "Username for x: " "Continue (yes/no)? " "Again (yes/no)? "; do ' +
              '"$SUDO_ASKPASS" "$prompt" || exit 9; done; [ "$SSH_ASKPASS" = "$GIT_ASKPASS" ] && echo $SSH_ASKPASS_REQUIRE'
          )
          assert.deepStrictEqual([output, code], [`${secret}\nada\nyes\nno\nforce`, 0])
          const shown = yield* person.shown
          assert.deepStrictEqual(
            shown.map(({ interaction }) => interaction._tag),
            ["Auth.Password", "Ask", "Confirm", "Confirm"]
          )
          const [first] = shown
          assert.instanceOf(first?.interaction, Interaction.AuthPassword)
          assert.match(
            first.interaction.prompt,
            /^The program sh of a running command asks:\n {2}Password:\n(?:Started by: .*\n)?Command: for prompt in/
          )
          assert.deepStrictEqual(
            fs.readdirSync(outside).filter((name) => name.startsWith("askpass")),
            []
          )
        }),
      { confined }
    ),
    60_000
  )

  it.scopedLive(
    "has no way to the person unless somebody allowed it by name",
    asking(
      [secret],
      ({ line, person }) =>
        Effect.gen(function* () {
          const [output] = yield* line('echo "$SUDO_ASKPASS$SSH_ASKPASS$GIT_ASKPASS$SSH_ASKPASS_REQUIRE"; ls /.assent*')
          assert.notInclude(output, "askpass")
          assert.lengthOf(yield* person.shown, 0)
        }),
      { askpass: false, confined }
    ),
    60_000
  )

  it.scopedLive(
    "fails with a sentence if the person cancels, and goes on",
    asking(
      [TestInteractor.cancel, TestInteractor.fail("it has left"), secret],
      ({ line }) =>
        Effect.gen(function* () {
          const [output, code] = yield* line('for n in 1 2 3; do "$SUDO_ASKPASS" "Password: "; echo "code $?"; done')
          assert.deepStrictEqual(
            [output, code],
            [
              "assent: The person gave no answer. Ask them before you run it again.\ncode 1\n" +
                "assent: No person can answer here. Use a key or a token that needs no question, or let the person run it.\ncode 1\n" +
                `${secret}\ncode 0`,
              0
            ]
          )
        }),
      { confined }
    ),
    60_000
  )

  it.scopedLive(
    "can ask ten times, and once for each of several programs at the same time",
    asking(
      (_, index) => `pass-${index}`,
      ({ line }) =>
        Effect.gen(function* () {
          const [output] = yield* line(
            'for n in 1 2 3 4; do "$SUDO_ASKPASS" "Password $n: " & done; wait; ' +
              'for n in 1 2 3 4 5 6 7; do "$SUDO_ASKPASS" "Password: "; done'
          )
          const lines = output.split("\n")
          assert.deepStrictEqual(
            lines.slice(0, 10).toSorted(),
            Array.from({ length: 10 }, (_, n) => `pass-${n}`)
          )
          assert.lengthOf(lines, 11)
          assert.include(lines[10], "This command has asked 10 times.")
        }),
      { confined }
    ),
    60_000
  )

  it.scopedLive(
    "cannot have the answer written to a file, through a link or otherwise, nor a file shown as its prompt",
    asking(
      () => secret,
      ({ line, outside, person, put, root }) =>
        Effect.gen(function* () {
          yield* put("plain", "before")
          fs.writeFileSync(`${outside}/host`, "before")
          fs.writeFileSync(`${outside}/prompt`, "\nWhat only the host knows:")
          // The program asks for itself, and puts something else where its pipe would be.
          const hostile = (number: number, target: string) =>
            `mkdir $d/${number}; printf '\\nPassword: ' >$d/${number}/r; ${target}; mv $d/${number}/r $d/${number}.request`
          const [, code] = yield* line(
            [
              "d=${SUDO_ASKPASS%/*}",
              hostile(1, `ln -s ${outside}/host $d/1.answer`),
              hostile(2, `ln -s ${root}/plain $d/2.answer`),
              hostile(3, "echo before >$d/3.answer"),
              hostile(4, "mkdir $d/4.answer"),
              `ln -s ${outside}/prompt $d/9.request`,
              "mkdir $d/6.request; mkfifo $d/7.request; head -c 20000 /dev/zero >$d/8.request",
              '"$SUDO_ASKPASS" last; [ "$(cat $d/3.answer)" = before ]'
            ].join("\n")
          )
          assert.strictEqual(code, 0)
          assert.strictEqual(fs.readFileSync(`${outside}/host`, "utf8"), "before")
          assert.strictEqual(fs.readFileSync(`${root}/plain`, "utf8"), "before")
          const shown = yield* person.shown
          assert.isAbove(shown.length, 0)
          assert.notInclude(JSON.stringify(shown), "What only the host knows")
          assert.isTrue(shown.every(({ interaction }) => interaction._tag === "Auth.Password"))
        }),
      { confined }
    ),
    60_000
  )

  it.scopedLive(
    "has its question withdrawn when the program that asks has ended",
    asking(
      [TestInteractor.silent, secret],
      ({ line, person }) =>
        Effect.gen(function* () {
          const [output] = yield* line(
            'timeout 1 "$SUDO_ASKPASS" "Password: "; echo "code $?"; "$SUDO_ASKPASS" "Password: "'
          )
          assert.strictEqual(output, `code 124\n${secret}`)
          assert.lengthOf(yield* person.dismissed, 1)
        }),
      { confined }
    ),
    60_000
  )

  it.scopedLive(
    "has its question withdrawn when its call is cancelled, and nothing hangs",
    asking(
      [TestInteractor.silent],
      ({ line, outside, person }) =>
        Effect.gen(function* () {
          const call = yield* Effect.fork(line('"$SUDO_ASKPASS" "Password: "'))
          yield* person.next
          yield* Fiber.interrupt(call)
          assert.deepStrictEqual(yield* person.open, [])
          assert.deepStrictEqual(
            fs.readdirSync(outside).filter((name) => name.startsWith("askpass")),
            []
          )
        }),
      { confined }
    ),
    60_000
  )

  it.scopedLive(
    "is not stopped for the time that the person takes, and is stopped for its own",
    asking(
      [TestInteractor.delay("3 seconds", secret)],
      ({ call, line }) =>
        Effect.gen(function* () {
          const [output] = yield* line('"$SUDO_ASKPASS" "Password: "', { timeout: 2 })
          assert.strictEqual(output, secret)
          assert.include(
            yield* call("run_command", { command: "echo begun; sleep 60", timeout: 1 }),
            "failed: The command was stopped: it ran for more than 1s. It printed:\nbegun"
          )
        }),
      { confined }
    ),
    60_000
  )
})

describe("a command that asks", () => {
  it.scopedLive(
    "gets a sentence at once if nobody is there",
    asking(
      [],
      ({ line, person }) =>
        Effect.gen(function* () {
          const [output, code] = yield* line('"$GIT_ASKPASS" "Username for x: " || "$SSH_ASKPASS" "Password: "')
          assert.deepStrictEqual([output, code], ["assent: Nobody is here.\nassent: Nobody is here.", 1])
          assert.deepStrictEqual(yield* person.shown, [])
        }),
      { nobody: "Nobody is here." }
    )
  )

  it.scopedLive("has no variables where nothing leads to a person, and keeps those that it was given", () =>
    Effect.gen(function* () {
      const { interactor } = yield* TestInteractor.make()
      const show = 'echo "${SUDO_ASKPASS-none}|${SSH_ASKPASS-none}|${GIT_ASKPASS-none}"'
      const printed = (expected: string, options: Parameters<typeof inWorkspace>[1]) =>
        inWorkspace(
          ({ run }) => Effect.map(run({ command: show }), ({ output }) => assert.strictEqual(output.trim(), expected)),
          options
        )()
      const asked = Interactor.withInteractor(interactor)
      const withPipes = Effect.provide(NodeFiles.askpass())
      const outside: Parameters<typeof inWorkspace>[1] = ({ outside }) => ({ spillDirectory: outside })
      yield* asked(printed("none|none|none", outside))
      yield* withPipes(printed("none|none|none", outside))
      yield* withPipes(asked(printed("none|none|none", {})))
      // There a command could replace the directory.
      yield* withPipes(asked(printed("none|none|none", ({ root }) => ({ spillDirectory: root }))))
      const environment = { SUDO_ASKPASS: "/own", SSH_ASKPASS: "/own", GIT_ASKPASS: "/own" }
      yield* withPipes(asked(printed("/own|/own|/own", ({ outside }) => ({ environment, spillDirectory: outside }))))
    })
  )

  it.scopedLive(
    "takes no answer of a rule or a model for a person's",
    asking([], ({ line }) =>
      Effect.gen(function* () {
        const rule = Interactor.make({
          id: "rule",
          how: "yolo",
          handlers: {
            Approve: Interactor.declines,
            grantStageTool: Interactor.declines,
            approveSubagentEnvelope: Interactor.declines,
            Clarify: Interactor.declines,
            Ask: () => Effect.succeed("somebody"),
            Select: Interactor.declines,
            Confirm: () => Effect.succeed(true),
            Elicit: Interactor.declines,
            "Auth.DeviceCode": Interactor.declines,
            "Auth.Password": Interactor.declines
          }
        })
        const [output] = yield* Interactor.withInteractor(rule)(
          line('for prompt in "Username: " "Go on (yes/no)?" "Password: "; do "$SSH_ASKPASS" "$prompt" 2>&1; done')
        )
        const lines = output.split("\n")
        assert.lengthOf(lines, 3)
        assert.isTrue(lines.every((one) => one.startsWith("assent: No person can answer here")))
      })
    )
  )

  it.scopedLive(
    "is told of -A when sudo cannot ask",
    asking([], ({ put, root, run }) =>
      Effect.gen(function* () {
        yield* put(
          "fake.sh",
          'sudo() { echo "sudo: a terminal is required to read the password; configure an askpass helper" >&2; return 1; }\nsudo ls\n'
        )
        const { notice } = yield* run({ command: `sh ${root}/fake.sh` })
        assert.strictEqual(notice, "[Call sudo with -A: then the person is asked for the password.]")
      })
    )
  )

  it.scopedLive(
    "gets the answer as it was typed, and none that is longer than a line or a pipe",
    asking([`  a\\b $c'"\té%s `, "x".repeat(1_000), "x".repeat(1_001)], ({ line }) =>
      Effect.gen(function* () {
        const ask = `"$SUDO_ASKPASS" "Password: "`
        const [typed] = yield* line(`${ask} | tr ' ' _`)
        assert.strictEqual(typed, `__a\\b_$c'"\té%s_`)
        assert.deepStrictEqual(yield* line(`${ask} | wc -c; ${ask}`), [
          "1001\nassent: The answer is too long, or has more than one line. Ask the person what to do.",
          1
        ])
      })
    )
  )

  it.scopedLive.skipIf(!fs.existsSync("/usr/bin/ssh-keygen"))(
    "leads ssh to the person",
    asking([secret], ({ line, person }) =>
      Effect.gen(function* () {
        const [output, code] = yield* line(
          `ssh-keygen -q -t ed25519 -N ${secret} -f key && ssh-keygen -y -f key | cut -d' ' -f1`
        )
        assert.deepStrictEqual([output, code], ["ssh-ed25519", 0])
        assert.include(JSON.stringify(yield* person.shown), "Enter passphrase")
      })
    )
  )

  it.scopedLive(
    "leads git to the person",
    asking(["ada", secret], ({ line, person }) =>
      Effect.gen(function* () {
        const [output] = yield* line(
          "printf 'protocol=https\\nhost=example.com\\n\\n' | git -c credential.helper= credential fill"
        )
        assert.include(output, `username=ada\npassword=${secret}`)
        assert.lengthOf(yield* person.shown, 2)
      })
    )
  )
})
