/** The words behind the program's name: which flags count where, and that help and completion tell the same. */
import { assert, describe, it } from "@effect/vitest"
import * as Invocation from "../../src/cli/config/Invocation.js"
import * as CommandTable from "../../src/cli/config/CommandTable.js"
import * as CompletionTable from "../../src/cli/config/CompletionTable.js"
import * as Flags from "../../src/cli/config/Flags.js"
import * as Help from "../../src/cli/config/Help.js"
import { type CommandName, commandNames } from "../../src/host/CommandName.js"

/** Every command, alone and with each of its verbs. */
const places: ReadonlyArray<readonly [command: CommandName, ...words: ReadonlyArray<string>]> = commandNames.flatMap(
  (name) => [
    [name],
    ...(CommandTable.commands[name].verbs ?? []).map((verb) => [name, CommandTable.nameOf(verb)] as const)
  ]
)

const given = (flag: keyof Flags.Flags): ReadonlyArray<string> =>
  Flags.table[flag].type === "boolean" ? [`--${flag}`] : [`--${flag}`, "x"]

describe("a command line", () => {
  it("has many workspaces for serve, and the last one elsewhere", () => {
    const two = ["--workspace", "a", "--workspace=b"]
    assert.deepInclude(Invocation.read(["serve", ...two, "c"]), { flags: { workspace: "a" }, words: ["c", "b"] })
    assert.deepInclude(Invocation.read([...two, "serve"]), { flags: { workspace: "a" }, words: ["b"] })
    assert.deepInclude(Invocation.read(["run", ...two, "c"]), { flags: { workspace: "b" }, words: ["c"] })
    assert.deepInclude(Invocation.read(["run", "c"]), { flags: {}, words: ["c"] })
    assert.include(Invocation.read(["doctor", ...two, "c"]), "takes no words")
  })

  it("has no word that its command does not take", () => {
    for (const [argv, told] of [
      [
        ["chat", "fix", "it"],
        'assent chat takes no words, and "fix" is one. To run a task: assent run "fix it"; in a chat, type it.'
      ],
      [["chat", "doctor"], 'assent chat takes no words, and "doctor" is one. Did you mean assent doctor?'],
      [["doctor", "x"], 'assent doctor takes no words, and "x" is one. assent help doctor shows how to use it.'],
      [
        ["completion", "bash", "zsh"],
        'assent completion takes one word, and "zsh" is another one. assent help completion shows how to use it.'
      ],
      [
        ["answer", "a", "b"],
        'assent answer takes one word, and "b" is another one. assent help answer shows how to use it.'
      ]
    ] as const)
      assert.strictEqual(Invocation.read(argv), told)
    for (const argv of [["chat"], ["run", "a", "b"], ["answer", "a"], ["completion", "bash"], ["chat", "x", "--help"]])
      assert.isObject(Invocation.read(argv), argv.join(" "))
  })

  it("takes the flags of its command, before it and behind, and refuses every other one in words", () => {
    for (const [command, ...words] of places) {
      const taken = CommandTable.flagsOf(command, words)
      for (const flag of Flags.names) {
        for (const argv of [
          [...given(flag), command, ...words],
          [command, ...words, ...given(flag)]
        ]) {
          const what = argv.join(" ")
          const read = Invocation.read(argv)
          if (taken.includes(flag)) {
            assert.isObject(read, what)
            continue
          }
          assert.isString(read, what)
          const [first = "", second, ...others] = String(read).split("\n")
          assert.isTrue(
            first.startsWith(`assent ${command}`) && first.includes(` takes no --${flag}; that is for assent `),
            first
          )
          assert.strictEqual(second, `assent help ${command} shows how to use it.`)
          assert.deepStrictEqual(others, [])
          for (const taker of CommandTable.takersOf(flag)) assert.include(first, `assent ${taker}`)
        }
      }
    }
  })

  it("has a command for every flag", () => {
    for (const flag of Flags.names) {
      assert.isTrue(CommandTable.takersOf(flag).length > 0 || CommandTable.always.some((one) => one === flag), flag)
    }
  })

  it("is told in help, and completed, as it is taken", () => {
    for (const name of commandNames) {
      const taken = Flags.names.filter((flag) =>
        places.some(
          ([command, ...words]) =>
            command === name && typeof Invocation.read([command, ...words, ...given(flag)]) !== "string"
        )
      )
      const told = Flags.names.filter((flag) =>
        new RegExp(`^  (?:-\\w, |    )--${flag}\\b(?!-)`, "m").test(Help.of(name))
      )
      assert.deepStrictEqual(told, taken, name)
      const completed = CompletionTable.commands.find((one) => one.name === name)?.flags.map((flag) => flag.name)
      assert.deepStrictEqual(completed, taken, name)
    }
  })

  it.each([
    [
      "doctor --json",
      "assent doctor takes no --json; that is for assent run, assent sessions list|waiting|answer|replay|turns|fork."
    ],
    ["sessions show ses_1 --speed 4", "assent sessions show takes no --speed; that is for assent sessions replay."],
    ["sessions --jsonl", "assent sessions list takes no --jsonl; that is for assent run. Did you mean --json?"],
    ["--timeout 5m", "assent chat takes no --timeout; that is for assent run."],
    [
      "permissions --store x",
      "assent permissions show takes no --store; that is for assent chat, assent run, assent permissions try, assent sessions, assent audit, assent serve, assent keys, assent acp, assent adopt, assent doctor."
    ],
    ["audit --json", "assent audit list takes no --json"]
  ])("of what a command has no use for is refused: %s", (line, sentence) => {
    assert.include(Invocation.read(line.split(" ")), sentence)
  })

  it("of somebody who asks for help is no mistake", () => {
    for (const line of ["doctor --json --help", "audit -v --store x"]) assert.isObject(Invocation.read(line.split(" ")))
  })
})
