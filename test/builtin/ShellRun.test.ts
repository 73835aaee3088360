import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Origin from "../../src/core/Origin.js"
import { execFileSync } from "node:child_process"
import * as ToolOutput from "../../src/tool/ToolOutput.js"
import * as Confined from "../kit/Confined.js"
import { inWorkspace } from "./workspaceFixture.js"

/** Collects what a call prints, and tells when `word` has been printed. */
const watching = (word: string) =>
  Effect.gen(function* () {
    const seen = yield* Deferred.make<string>()
    const chunks: Array<string> = []
    const sink = (chunk: ToolOutput.Chunk) =>
      Effect.suspend(() => {
        chunks.push(chunk.text)
        const all = chunks.join("")
        return all.includes(word) ? Effect.asVoid(Deferred.succeed(seen, all)) : Effect.void
      })
    return {
      chunks,
      printed: Deferred.await(seen),
      watch: Effect.provideService(ToolOutput.ToolOutput, sink)
    }
  })

/** Whether a process runs; one that is dead and not yet collected does not. */
const isAlive = (pid: string) =>
  `grep -q '^State:[^ZX]*$' /proc/${pid.trim()}/status 2>/dev/null && echo alive || echo gone`

describe("run_command", () => {
  it.scopedLive(
    "gives exit code and output, errors in their place, and reads nothing",
    inWorkspace(({ run }) =>
      Effect.gen(function* () {
        const result = yield* run({
          command: "for i in 1 2 3; do echo out$i; echo err$i >&2; done; cat; printf end; exit 7"
        })
        assert.strictEqual(result.exitCode, 7)
        assert.strictEqual(result.output, "out1\nerr1\nout2\nerr2\nout3\nerr3\nend")
        assert.isAtLeast(result.durationMs, 0)
        assert.deepStrictEqual(Object.keys(result).sort(), ["durationMs", "exitCode", "output"])
      })
    )
  )

  it.scopedLive(
    "runs where it is told, with the given environment, and takes the command as it is written",
    inWorkspace(
      ({ call, check, put, root, run }) =>
        Effect.gen(function* () {
          yield* put("sub dir/file", "")
          assert.strictEqual((yield* run({ command: "pwd" })).output, `${root}\n`)
          assert.strictEqual((yield* run({ command: "pwd", cwd: "sub dir" })).output, `${root}/sub dir\n`)
          assert.strictEqual((yield* run({ command: 'echo $GREETING $PAGER; test -n "$PATH"' })).output, "hello cat\n")
          const odd = `printf '%s\\n' "it's" '"$x"' \\\n  "$(echo 'sub  st')" # comment`
          assert.strictEqual((yield* run({ command: odd })).output, `it's\n"$x"\nsub  st\n`)
          for (const [params, reason] of [
            [{ command: "pwd", cwd: "none" }, "none does not exist."],
            [{ command: "pwd", cwd: "sub dir/file" }, "sub dir/file is not a directory."],
            [{ command: "  " }, "The command is empty."],
            [{ command: "echo \0" }, "zero character"],
            [{ command: "pwd", timeout: 0 }, "timeout must be more than 0"]
          ] as const) {
            assert.include(yield* check("run_command", params), reason)
            assert.include(yield* call("run_command", params), reason)
          }
        }),
      { environment: { GREETING: "hello" } }
    )
  )

  it.scopedLive(
    "uses another shell when it is given one, and says so when there is none",
    inWorkspace(
      ({ run }) =>
        Effect.gen(function* () {
          const { exitCode, output } = yield* run({ command: "echo x" })
          assert.strictEqual(exitCode, 127)
          assert.include(output, "/no/such/shell")
        }),
      { shell: "/no/such/shell" }
    )
  )

  it.scopedLive(
    "names the signal that ended a command",
    inWorkspace(({ run }) =>
      Effect.gen(function* () {
        const { exitCode, signal } = yield* run({ command: "kill -SEGV $$" })
        assert.deepStrictEqual({ exitCode, signal }, { exitCode: null, signal: "SIGSEGV" })
      })
    )
  )

  it.scopedLive(
    "waits for a command that closed its output early",
    inWorkspace(({ run }) =>
      Effect.gen(function* () {
        assert.strictEqual((yield* run({ command: "exec >&- 2>&-; sleep 0.2; exit 5" })).exitCode, 5)
      })
    )
  )

  it.scopedLive(
    "shows what is printed while it is printed, without control characters and with whole characters",
    inWorkspace(({ fileSystem, root, run }) =>
      Effect.gen(function* () {
        const first = yield* watching("caf")
        // The command goes on only after its first words were seen, so they were not held back until its end.
        yield* Effect.fork(Effect.zipRight(first.printed, fileSystem.writeFileString(`${root}/go`, "")))
        const { output } = yield* first.watch(
          run({
            command:
              "printf '\\033[32mcaf\\303'; until [ -e go ]; do sleep 0.02; done; " +
              "printf '\\251\\033[0m\\n10%%\\r20%%\\r\\n\\a'"
          })
        )
        assert.strictEqual(output, "café\n20%\n")
        assert.strictEqual(first.chunks.join(""), "café\n10%\r20%\n")
      })
    )
  )

  it.scopedLive(
    "keeps a quarter of a gigabyte in bounded memory, saves its beginning, and lets it be read",
    inWorkspace(
      ({ call, run, fileSystem, outside }) =>
        Effect.gen(function* () {
          const output = yield* watching("never printed")
          const before = process.memoryUsage().rss
          let most = before
          const measure = (chunk: ToolOutput.Chunk) =>
            Effect.sync(() => {
              output.chunks.push(chunk.text)
              most = Math.max(most, process.memoryUsage().rss)
            })
          const result = yield* Effect.provideService(
            run({ command: "echo first; yes 0123456789 | head -c 250000000; echo last", timeout: 280 }),
            ToolOutput.ToolOutput,
            measure
          )
          most = Math.max(most, process.memoryUsage().rss)
          assert.strictEqual(result.exitCode, 0)
          assert.isTrue(result.output.startsWith("first\n0123456789\n"))
          assert.isTrue(result.output.endsWith("last\n"))
          assert.isAtMost(result.output.length, 30_300)
          assert.match(result.output, /characters in \d+ lines left out; the first 50000000 characters are in /)
          assert.isBelow(most - before, 200_000_000)
          const shown = output.chunks.join("")
          const leftOut = [...shown.matchAll(/^\[… (\d+) characters are not shown here\]$/gm)].map(([, count]) =>
            Number(count)
          )
          assert.isAbove(
            leftOut.reduce((sum, count) => sum + count, 0),
            200_000_000
          )
          assert.isTrue(shown.endsWith("last\n"))
          const file = result.outputFile ?? ""
          assert.isTrue(file.startsWith(`${outside}/spill/`))
          assert.strictEqual(Number((yield* fileSystem.stat(file)).size), 50_000_000)
          assert.include(yield* call("read_file", { path: file, limit: 1 }), "     1\tfirst\n[Line 1; more follow")
          assert.include(yield* call("write_file", { path: file, content: "" }), "outside the workspace")
        }),
      ({ outside }) => ({ spillDirectory: `${outside}/spill` })
    ),
    300_000
  )

  it.scopedLive(
    "saves the last row of a long output, too, where that has no end",
    inWorkspace(
      ({ fileSystem, run }) =>
        Effect.gen(function* () {
          const { outputFile = "" } = yield* run({ command: "seq 10000; printf 'no end'" })
          const saved = yield* fileSystem.readFileString(outputFile)
          assert.isTrue(saved.endsWith("10000\nno end"), saved.slice(-40))
        }),
      ({ outside }) => ({ spillDirectory: `${outside}/spill` })
    )
  )

  it.scopedLive(
    "lets what it saved be read where nothing else can be",
    inWorkspace(
      ({ call, put, run, root }) =>
        Effect.gen(function* () {
          yield* put(".assent/output/other.txt", "not yours")
          const { outputFile = "" } = yield* run({ command: "seq 1000" })
          assert.isTrue(outputFile.startsWith(`${root}/.assent/output/`))
          assert.strictEqual(
            yield* call("search_files", { pattern: "^999$", path: outputFile }),
            `${outputFile}:999: 999`
          )
          assert.include(
            yield* call("read_file", { path: `${root}/.assent/output/other.txt` }),
            "belongs to the runtime"
          )
          assert.include(yield* call("edit_file", { path: outputFile, old_text: "1", new_text: "2" }), "failed: ")
        }),
      ({ root }) => ({ spillDirectory: `${root}/.assent/output`, maxOutput: 1_000 })
    )
  )

  it.scopedLive(
    "stops a command whose time is up, with everything it started, and reports what it printed",
    inWorkspace(({ call, get, run }) =>
      Effect.gen(function* () {
        const text = yield* call("run_command", {
          command: "sleep 1000 & echo $! > pid; trap 'echo last words; exit' TERM; echo ready; wait",
          timeout: 2
        })
        assert.strictEqual(
          text,
          "failed: The command was stopped: it ran for more than 2s. It printed:\nready\nlast words\n"
        )
        assert.strictEqual((yield* run({ command: isAlive(yield* get("pid")) })).output, "gone\n")
      })
    )
  )

  it.scopedLive(
    "kills what does not listen",
    inWorkspace(
      ({ call, get, run }) =>
        Effect.gen(function* () {
          const text = yield* call("run_command", {
            command: "trap '' TERM; echo $$ > pid; sh -c 'echo $$ > child; while :; do sleep 1; done'"
          })
          assert.include(text, "failed: The command was stopped: it ran for more than 2s. It printed nothing.")
          assert.strictEqual((yield* run({ command: isAlive(yield* get("pid")), timeout: 60 })).output, "gone\n")
          assert.strictEqual((yield* run({ command: isAlive(yield* get("child")), timeout: 60 })).output, "gone\n")
        }),
      { commandTimeout: "2 seconds" }
    )
  )

  it.scopedLive(
    "leaves no grandchild alive when it is interrupted, stopped ones included",
    inWorkspace(({ get, run }) =>
      Effect.gen(function* () {
        const output = yield* watching("ready")
        const running = yield* Effect.fork(
          output.watch(
            run({
              command:
                'sh -c \'sh -c "trap \\"\\" TERM; echo \\$\\$ > a; while :; do sleep 1; done" & sleep 1000 & echo $! > b; kill -STOP $!; wait\' & ' +
                "until [ -s a ] && [ -s b ]; do sleep 0.02; done; echo ready; wait"
            })
          )
        )
        yield* output.printed
        assert.isTrue(Exit.isInterrupted(yield* Fiber.interrupt(running)))
        assert.strictEqual((yield* run({ command: isAlive(yield* get("a")) })).output, "gone\n")
        assert.strictEqual((yield* run({ command: isAlive(yield* get("b")) })).output, "gone\n")
      })
    )
  )

  it.scopedLive(
    "does not wait for a child in the background, silent or not, and ends it",
    inWorkspace(({ get, run }) =>
      Effect.gen(function* () {
        const silent = yield* run({ command: "sleep 1000 & echo $! > pid; echo started" })
        assert.deepStrictEqual([silent.exitCode, silent.output], [0, "started\n"])
        assert.isBelow(silent.durationMs, 10_000)
        assert.strictEqual((yield* run({ command: isAlive(yield* get("pid")) })).output, "gone\n")
        const loud = yield* run({ command: "yes & echo $! > pid" })
        assert.isBelow(loud.durationMs, 10_000)
        assert.strictEqual((yield* run({ command: isAlive(yield* get("pid")) })).output, "gone\n")
        const apart = yield* run({ command: "sleep 1000 >/dev/null 2>&1 & echo $! > pid" })
        assert.strictEqual(apart.exitCode, 0)
        assert.strictEqual((yield* run({ command: isAlive(yield* get("pid")) })).output, "gone\n")
      })
    )
  )

  // `env -i` would hide them: see the module.
  for (const [how, command] of [
    ["a session of its own", "setsid sh -c 'echo $$ > pid; exec sleep 1000' & "],
    ["one that does not listen", `setsid sh -c 'trap "" TERM HUP; echo $$ > pid; while :; do sleep 1; done' & `],
    ["a daemon", "(setsid sh -c '(echo $(exec sh -c \"echo \\$PPID\") > pid; exec sleep 1000) & ' &) & "],
    ["one that was told to survive", "setsid nohup sh -c 'echo $$ > pid; exec sleep 1000' >/dev/null 2>&1 & "]
  ] as const) {
    it.scopedLive.skipIf(process.platform !== "linux")(
      `ends what left the group: ${how}`,
      inWorkspace(({ get, run }) =>
        Effect.gen(function* () {
          const { exitCode } = yield* run({ command: `${command} until [ -s pid ]; do sleep 0.02; done` })
          assert.strictEqual(exitCode, 0)
          const pid = yield* get("pid")
          assert.match(pid, /^\d+\n$/)
          assert.strictEqual((yield* run({ command: isAlive(pid) })).output, "gone\n")
        })
      )
    )
  }

  it.scopedLive.skipIf(process.platform !== "linux")(
    "ends what left the group when its time is up, and leaves what belongs to another call",
    inWorkspace(({ call, get, run }) =>
      Effect.gen(function* () {
        const output = yield* watching("ready")
        const other = yield* Effect.fork(
          output.watch(
            run({
              command:
                "setsid sh -c 'echo $$ > other; exec sleep 1000' & until [ -s other ]; do sleep 0.02; done; echo ready; sleep 1000"
            })
          )
        )
        yield* output.printed
        yield* call("run_command", {
          command: "setsid sh -c 'echo $$ > pid; exec sleep 1000' & sleep 1000",
          timeout: 2
        })
        assert.strictEqual((yield* run({ command: isAlive(yield* get("pid")) })).output, "gone\n")
        assert.strictEqual((yield* run({ command: isAlive(yield* get("other")) })).output, "alive\n")
        yield* Fiber.interrupt(other)
        assert.strictEqual((yield* run({ command: isAlive(yield* get("other")) })).output, "gone\n")
      })
    )
  )

  it.scopedLive(
    "loses nothing when whoever watches is slow",
    inWorkspace(({ fileSystem, root, run }) =>
      Effect.gen(function* () {
        const seen: Array<string> = []
        // Reads on only when the command has long ended.
        const slow = (chunk: ToolOutput.Chunk) =>
          fileSystem.exists(`${root}/done`).pipe(
            Effect.repeat({ until: (done) => done }),
            Effect.zipRight(Effect.repeatN(fileSystem.stat(root), 500)),
            Effect.orDie,
            Effect.map(() => void seen.push(chunk.text))
          )
        const { output } = yield* Effect.provideService(
          run({ command: "seq 5000; touch done" }),
          ToolOutput.ToolOutput,
          slow
        )
        assert.strictEqual(output, Array.from({ length: 5_000 }, (_, index) => `${index + 1}\n`).join(""))
        assert.strictEqual(seen.join(""), output)
      })
    )
  )

  it.scopedLive(
    "is shown with its directory, unless that is the workspace, before it runs",
    inWorkspace(({ put, preview }) =>
      Effect.gen(function* () {
        yield* put("web/a.txt", "")
        const shown = (params: object) => Effect.map(preview("run_command", params), ({ summary }) => summary)
        assert.deepStrictEqual(yield* preview("run_command", { command: "make\nmake install" }), {
          summary: "run make …",
          details: "make\nmake install",
          format: "code",
          language: "sh"
        })
        assert.strictEqual(yield* shown({ command: "ls in /w", cwd: "web" }), "run in web: ls in /w")
        assert.strictEqual(yield* shown({ command: "in /w: ls" }), "run: in /w: ls")
      })
    )
  )
})

/** A workspace whose commands run in the sandbox, with these privileges. */
const confined = (use: Parameters<typeof inWorkspace>[0], privileges?: Origin.Privileges) => () =>
  inWorkspace(use, ({ outside }) => ({ sandbox: { mode: "require", directory: `${outside}/state` } }))().pipe(
    Origin.withDecision(privileges === undefined ? {} : { privileges })
  )
const readOnly = { readOnly: true, git: false, askpass: false }

describe.skipIf(!Confined.isWanted)("run_command in the sandbox", () => {
  it.scopedLive(
    "says how to ask for more, if a command that only reads was held back",
    confined(
      ({ get, put, run }) =>
        Effect.gen(function* () {
          yield* put("a.txt", "one\n")
          const held = yield* run({ command: "cat a.txt; echo two > a.txt" })
          assert.match(held.notice ?? "", /^\[It ran as a command that only reads: .* call again with sandbox "write"/)
          assert.strictEqual(yield* get("a.txt"), "one\n")
          // Nothing was held back: a search that finds nothing fails, too.
          assert.isUndefined((yield* run({ command: "grep two a.txt" })).notice)
        }),
      readOnly
    )
  )

  it.scopedLive(
    "says that only git may write in .git, and lets git write there",
    confined(({ root, run }) =>
      Effect.gen(function* () {
        execFileSync("git", ["init", "-q", root])
        const { notice } = yield* run({ command: "touch .git/x" })
        assert.include(notice ?? "", "Only git may write in .git: run git in a call of its own.")
        assert.notInclude((yield* run({ command: "touch /x" })).notice ?? "", "Only git")
        const commit = "git -c user.name=a -c user.email=a@example.com commit -q --allow-empty -m x"
        assert.notStrictEqual((yield* run({ command: commit })).exitCode, 0)
        const asGit = Origin.withDecision({ privileges: { readOnly: false, git: true, askpass: false } })
        assert.strictEqual((yield* asGit(run({ command: commit }))).exitCode, 0)
      })
    )
  )
})
