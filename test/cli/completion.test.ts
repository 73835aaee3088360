/** The scripts that shells complete with, in the shells that are here. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import { execFileSync, spawnSync } from "node:child_process"
import * as Completion from "../../src/cli/config/Completion.js"
import * as Table from "../../src/cli/config/CompletionTable.js"
import * as Program from "../kit/Program.js"
import * as Pseudo from "../kit/Pseudo.js"

const commands =
  "chat run permissions profiles sessions mcp audit answer serve keys acp adopt doctor completion help".split(" ")

/** A program in whose place shells complete, and what it has. */
const completing = Effect.gen(function* () {
  const place = yield* Program.place
  for (const words of ['say "hi" to: all', "list"]) yield* place.call(["run", words])
  const listed = (yield* place.call(["sessions", "--json"])).stdout
  yield* place.write("sessions.txt", listed)
  yield* place.write("profiles.txt", (yield* place.call(["profiles"])).stdout)
  const program = yield* place.write(
    "bin/assent",
    `#!/bin/sh\ncase "$*" in "sessions --json") cat ${place.path("sessions.txt")};; profiles) cat ${place.path("profiles.txt")};; *) exec ${process.execPath} ${Program.binary} "$@";; esac\n`
  )
  fs.chmodSync(program, 0o755)
  const ids = listed
    .trim()
    .split("\n")
    .map((line): string => JSON.parse(line).rootSessionId)
  assert.strictEqual(ids.length, 2)
  const script = (shell: string) =>
    Effect.flatMap(place.call(["completion", shell]), ({ stdout }) => place.write(`complete.${shell}`, stdout))
  const env = { PATH: `${place.path("bin")}:${process.env["PATH"]}` }
  const profiles = ["code_reviewer", "explore", "plan"]
  yield* place.write("workspace/given/step.yaml", "")
  fs.mkdirSync(place.path("workspace", "given", "sub"))
  const given = place.path("workspace", "given")
  /** A line up to the cursor, and what may come there. */
  const cases: ReadonlyArray<readonly [line: string, words: ReadonlyArray<string>]> = [
    ["assent ", commands],
    ["assent se", ["serve", "sessions"]],
    ["assent sessions re", ["replay"]],
    ["assent --store x audit v", ["verify"]],
    ["assent --mode=ask --plain audit v", ["verify"]],
    ["assent --model script:x audit v", ["verify"]],
    ["assent audit --key verify v", ["verify"]],
    ["assent -m offline audit v", ["verify"]],
    ["assent help do", ["doctor"]],
    ["assent run do", []],
    ["assent --mo", ["--mode", "--model"]],
    ["assent sessions --s", ["--speed", "--store"]],
    ["assent --workspace x doctor --s", ["--sandbox", "--store"]],
    ["assent completion --s", []],
    ["assent --sandbox ", ["auto", "off", "require"]],
    ["assent run --mode=a", ["allow", "ask"]],
    ["assent run --mode=", ["allow", "ask", "deny", "plan"]],
    ["assent --model s", ["script:"]],
    ["assent --channel w", ["webhook:"]],
    ["assent --model o", ["offline", "ollama/", "openai-compatible/", "openai/", "openrouter/"]],
    ["assent --reviewer n", ["none"]],
    ["assent --escalate ", ["none"]],
    ["assent sessions replay x --speed ", ["max"]],
    ["assent sessions replay x --s", ["--speed", "--store"]],
    ["assent sessions show x --s", ["--store"]],
    ["assent --profile ", [...profiles, "none"]],
    ["assent --profile=e", ["explore"]],
    ["assent --resume ", ids],
    ["assent --plain sessions show ", ids],
    ["assent sessions --plain --workspace x show ", ids],
    ["assent audit verify ", ids],
    [`assent sessions show ${ids[0]}`, ids.slice(0, 1)],
    [`assent sessions show ${ids[0]} `, []],
    ["assent run show ", []],
    ["assent profiles show ", profiles],
    ["assent profiles show plan ", []]
  ]
  /** Where a path goes on behind a colon, or a word stands beside paths. Shells differ in what they show of the path. */
  const paths: ReadonlyArray<readonly [line: string, words: ReadonlyArray<string>]> = [
    [`assent --model script:${given}/s`, ["step.yaml", "sub"]],
    [`assent --reviewer script:${given}/st`, ["step.yaml"]],
    [`assent run --channel file:${given}/s`, ["sub"]],
    [`assent run --channel webhook:${given}/s`, []],
    [`assent --store ${given}/st`, ["step.yaml"]],
    ["assent --store :m", [":memory:"]],
    ["assent --store p", ["postgres://"]]
  ]
  const sorted = cases.map(([line, words]) => [line, words.toSorted()] as const)
  /** A process of the program for each is slow, so shells are asked for some of each kind. */
  const some = new Set([
    ...["assent ", "assent --mode=ask --plain audit v", "assent run do", "assent --mo", "assent --sandbox "],
    ...["assent run --mode=a", "assent run --mode=", "assent --model o", "assent --profile ", "assent --profile=e"],
    ...["assent --plain sessions show ", "assent profiles show plan "]
  ])
  return { place, script, env, paths, all: sorted, ids, cases: sorted.filter(([line]) => some.has(line)) }
})

/** Whether a shell is here that a test can ask. */
const isHere = (shell: string): boolean => spawnSync(shell, ["--version"]).status === 0

describe("completion", () => {
  it.live("offers what can stand there, and nothing else", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { all, ids } = yield* completing
        const sources: { readonly [source: string]: ReadonlyArray<string> } = {
          "/sessions": ids,
          "/profiles": ["code_reviewer", "explore", "plan"]
        }
        for (const [line, words] of all) {
          const parts = line.split(" ").slice(1)
          const current = parts.at(-1)?.replace(/^--[\w-]+=/, "") ?? ""
          const found = Completion.of(parts)
            .map((row) => row.split("\t")[0] ?? "")
            .flatMap((word) => sources[word] ?? (word.startsWith("/") ? [] : [word.replace(/^--[\w-]+=/, "")]))
            .filter((word) => word.startsWith(current))
          assert.deepStrictEqual(found.toSorted(), words, line)
        }
      })
    )
  )

  it.live("of bash offers what can stand there, and nothing else", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { cases, env, paths, place, script } = yield* completing
        const source = yield* script("bash")
        const ask = `source ${source}; COMP_LINE="$1"; shift; COMP_POINT=\${#COMP_LINE}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _assent; printf '%s\\n' "\${COMPREPLY[@]-}"`
        const completed = (line: string, ...words: ReadonlyArray<string>) =>
          execFileSync("bash", ["--norc", "-uc", ask, "bash", line, ...words], {
            encoding: "utf8",
            env,
            cwd: place.path("tmp")
          })
            .split("\n")
            .filter((word) => word !== "")
            .toSorted()
        for (const [line, words] of cases) {
          // Bash makes words of a sign and a colon, and of what stands around them.
          const parts = line.split(/ |([=:])/).filter((part) => part !== undefined)
          assert.deepStrictEqual(completed(line, ...(line.endsWith("=") ? parts.slice(0, -1) : parts)), words, line)
        }
        for (const [line, words] of paths) {
          const parts = line.split(/ |([=:])/).filter((part) => part !== undefined)
          const shown = completed(line, ...parts.filter((part) => part !== "")).map((word) =>
            word.replace(/^.*\/(?=[^/])/, "")
          )
          // What stands before the last colon is there already.
          assert.deepStrictEqual(
            shown,
            words.map((word) => word.replace(/^:/, "")),
            line
          )
        }
        // A name with a blank is one word.
        yield* place.write("given/my file.txt", "")
        fs.mkdirSync(place.path("given", "my dir"))
        const given = place.path("given", "my")
        assert.deepStrictEqual(completed(`assent --workspace ${given}`, "assent", "--workspace", given), [
          `${given} dir`
        ])
        const check = ["assent", "profiles", "check", "x", given]
        assert.deepStrictEqual(completed(check.join(" "), ...check), [`${given} dir`, `${given} file.txt`])
      })
    )
  )

  it.live.runIf(isHere("fish"))("of fish offers the same", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { cases, env, paths, place, script } = yield* completing
        const source = yield* script("fish")
        const isPath = new Set(paths.map(([line]) => line))
        for (const [line, words] of [...cases, ...paths]) {
          const ask = `source ${source}; complete -C ${JSON.stringify(line)}`
          const offered = execFileSync("fish", ["--no-config", "-c", ask], {
            encoding: "utf8",
            cwd: place.path("tmp"),
            env: { ...process.env, ...env }
          })
          const found = offered
            .split("\n")
            .map((row) => row.replace(/\t.*|^--\w+=/g, ""))
            .map((row) => (isPath.has(line) ? row.replace(/(?<![:/])\/$|^.*\/(?=[^/])/g, "") : row))
          // It takes flags apart itself, and offers them with their sign where they take a value.
          assert.deepStrictEqual([...new Set(found)].filter((word) => word !== "").toSorted(), words, line)
        }
      })
    )
  )

  it.live.runIf(isHere("zsh"))("of zsh offers the same", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { cases, env, paths, place, script } = yield* completing
        const source = yield* script("zsh")
        const shell = yield* Pseudo.startZsh(place, { env, columns: 200, rows: 40 })
        const listed = (screen: string) => {
          const rows = screen
            .slice(screen.lastIndexOf("\n$ ") + 1)
            .split("\n")
            .slice(1)
          const words = rows.flatMap((row) => row.split(" -- ")[0]?.trim().split(/\s+/) ?? [])
          return words.filter((word) => word !== "").toSorted()
        }
        yield* shell.type(`autoload -U compinit; compinit -u -D; source ${source}; unsetopt beep listbeep\r`)
        // It marks directories.
        const marked = paths.map(
          ([line, words]) => [line, words.map((word) => (word === "sub" ? "sub/" : word))] as const
        )
        for (const [line, words] of [...cases, ...marked]) {
          yield* shell.type("\x0c")
          yield* shell.sees((screen) => screen === "$")
          yield* shell.type(`${line}\x04`)
          if (words.length === 0) {
            yield* shell.type("END")
            const screen = yield* shell.sees((screen) => screen.startsWith(`$ ${line}END`))
            assert.deepStrictEqual(listed(screen), [], line)
          } else yield* shell.sees((screen) => JSON.stringify(listed(screen)) === JSON.stringify(words))
          yield* shell.type("\x15")
        }
      })
    )
  )

  it.live("offers the values that are accepted, and no others", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const place = yield* Program.place
        const offered = (name: string): ReadonlyArray<string> => {
          const takes = Table.flags.find((flag) => flag.name === name)?.takes
          return typeof takes === "object" ? takes.words : []
        }
        /** The command that reads a flag, and how it lists what it takes. */
        const readers: ReadonlyArray<readonly [flag: string, lists: RegExp]> = [
          ["mode", /takes (.*), not/],
          ["mediator", /takes (.*), not/],
          ["sandbox", /takes (.*), not/],
          ["log-level", /takes (.*), not/],
          ["vouch", /takes (.*)\./],
          ["channel", /Channels: (.*)\./],
          ["escalate", /or (none), not/],
          ["speed", /or (max)\./],
          ["model", /The providers are (.*)\. The model/]
        ]
        const call = (flag: string, value: string) =>
          flag === "speed"
            ? place.call(["sessions", "replay", "ses_none", "--speed", value])
            : place.call([
                "run",
                `--${flag}`,
                value,
                ...(value === "json" ? ["--jsonl"] : []),
                "--store",
                ":memory:",
                "list"
              ])
        for (const [flag, lists] of readers) {
          const { stderr } = yield* call(flag, "nothing")
          const listed = (lists.exec(stderr.replace(/\s+/g, " "))?.[1] ?? "").split(/, | or /)
          const values = flag === "model" ? offered(flag).filter((word) => word.endsWith("/")) : offered(flag)
          const bare = values.map((word) => word.replace(/[/:]$/, ""))
          assert.deepStrictEqual(bare.toSorted(), listed.map((word) => word.replace(/:.*$/, "")).toSorted(), flag)
          for (const value of values) {
            const rest = value === "file:" ? place.path("ask") : value === "webhook:" ? "http://127.0.0.1:9/" : "x"
            const whole = /[/:]$/.test(value) ? `${value}${rest}` : value
            assert.notMatch((yield* call(flag, whole)).stderr, lists, `${flag} ${whole}`)
          }
        }
        for (const value of ["none", "explore"]) assert.strictEqual((yield* call("profile", value)).code, 0, value)
        assert.deepStrictEqual(offered("profile"), ["none"])
        const help = (yield* place.call(["help", "run"])).stdout.replace(/\s+/g, " ")
        for (const flag of ["mode", "mediator", "sandbox", "vouch", "model", "channel"]) {
          for (const word of offered(flag)) {
            assert.include(help, word.replace(/[/:]$/, ""), flag)
          }
        }
      })
    )
  )

  it.live("takes the shells that there are", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const place = yield* Program.place
        const { code, stderr } = yield* place.call(["completion", "tcsh"])
        assert.deepStrictEqual([code, stderr], [2, "assent: assent completion takes bash, zsh, fish.\n"])
      })
    )
  )
})
