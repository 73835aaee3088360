import { assert, describe, it } from "@effect/vitest"
import * as fc from "effect/FastCheck"
import * as CopiedWords from "../../../src/tui/process/CopiedWords.js"
import * as Fitted from "../../../src/tui/process/Fitted.js"
import { printed } from "./wordedFixture.js"
import * as Runs from "../../kit/Runs.js"

const bare = (text: string): string => text.replaceAll(/\x1b\[[\d;]*m/g, "")

/** Sentences as the program says them, and what is copied out of each. */
const sentences: ReadonlyArray<readonly [sentence: string, ...copied: ReadonlyArray<string>]> = [
  ["\x1b[2mTo resume: assent --resume ses_0uarqzr0wc296p-1\x1b[22m", "assent --resume ses_0uarqzr0wc296p-1"],
  [
    "assent: session ses_1 is forked at turn 3. To resume: assent run --store /var/sessions.db --resume ses_2",
    "assent run --store /var/sessions.db --resume ses_2"
  ],
  [
    "Go on there; if that directory was moved, take the session over: assent sessions adopt ses_0uarqzr0wc296p-1.",
    "assent sessions adopt ses_0uarqzr0wc296p-1"
  ],
  [
    "No entry 4. assent sessions turns ses_0uarqzr0wc296p-1 lists its turns.",
    "assent sessions turns ses_0uarqzr0wc296p-1"
  ],
  [
    "Let them answer through --channel file:DIR or webhook:URL, at a terminal, or with assent sessions answer; nothing else.",
    "--channel file:DIR",
    "assent sessions answer"
  ],
  [
    'assent run needs a task: assent run "summarise README.md. Then stop, or go on", or pipe one in.',
    'assent run "summarise README.md. Then stop, or go on"'
  ],
  [
    "✗ sandbox      bubblewrap is not installed: apt-get install bubblewrap, dnf install bubblewrap, apk add bubblewrap or pacman -S bubblewrap.",
    "apt-get install bubblewrap",
    "dnf install bubblewrap",
    "apk add bubblewrap",
    "pacman -S bubblewrap"
  ],
  [
    "✗ sandbox      on Ubuntu: sysctl kernel.apparmor_restrict_unprivileged_userns=0; elsewhere: sysctl kernel.unprivileged_userns_clone=1 and user.max_user_namespaces above 0.",
    "sysctl kernel.apparmor_restrict_unprivileged_userns=0",
    "sysctl kernel.unprivileged_userns_clone=1"
  ],
  [
    "Assent cannot store sessions: no package. Run npm install @effect/sql @libsql/client, or start with --store :memory:.",
    "npm install @effect/sql @libsql/client",
    "--store :memory:"
  ],
  [
    "– model        offline/offline, which is not a language model; choose one with --model PROVIDER/MODEL",
    "--model PROVIDER/MODEL"
  ],
  [
    "The key /home/ada/key is not yours alone to read or write. Run: chmod 600 /home/ada/key",
    "chmod 600 /home/ada/key"
  ],
  [
    "  assent sessions answer ses_0uarqzr0wc296p-1 req_0uarqzr0wc296p-2 ANSWER",
    "assent sessions answer ses_0uarqzr0wc296p-1 req_0uarqzr0wc296p-2 ANSWER"
  ]
]

/** Every way in which a sentence of ours is broken. */
const doors = { Fitted: Fitted.lines, Worded: printed }

describe("what is copied out of a sentence", () => {
  it("stands in one row, however narrow the terminal is", () => {
    for (const [name, broken] of Object.entries(doors)) {
      for (const [sentence, ...copied] of sentences) {
        for (let columns = 40; columns <= 130; columns++) {
          const rows = bare(broken(sentence, columns)).split("\n")
          for (const words of copied) {
            assert.isTrue(
              rows.some((row) => row.includes(words)),
              `${name}, ${columns} columns: ${rows.join("↵")}`
            )
          }
          // What is copied may be wider than a row; nothing else is.
          for (const row of rows) {
            const isCopied = copied.some((words) => row.includes(words))
            assert.isTrue(
              isCopied || row.length <= columns || !/\S \S/.test(row),
              `${name}, ${columns} columns: ${row}`
            )
          }
        }
      }
    }
  })

  it("is not what only sounds like it", () => {
    const prose = [
      "the program assent is not on the path, and git main is a branch of it",
      "assent takes: list; show NAME",
      "profiles, which assent profiles lists them",
      "--yolo allows everything here"
    ]
    for (const line of prose) assert.strictEqual(CopiedWords.joined(line), line)
  })

  it("is told apart without a word lost or gained, wherever it stands", () => {
    const word = fc.oneof(
      fc.constantFrom(
        "assent",
        "git",
        "npm",
        "install",
        "run",
        "Run:",
        "or",
        "with",
        "--store",
        "FILE",
        '"a',
        'b"',
        "it's",
        "(x)"
      ),
      fc.stringMatching(/^[a-z]{1,9}[.,:;]?$/)
    )
    const line = fc.tuple(fc.constantFrom("", "  ", "✓ what  "), fc.array(word, { maxLength: 14 }))
    fc.assert(
      fc.property(line, fc.integer({ min: 2, max: 60 }), ([before, words], columns) => {
        const text = before + words.join(" ")
        assert.strictEqual(CopiedWords.parted(CopiedWords.joined(text)), text)
        for (const broken of Object.values(doors))
          assert.strictEqual(broken(text, columns).replaceAll(/\s/g, ""), text.replaceAll(/\s/g, ""))
      }),
      { numRuns: Runs.of(500) }
    )
  })
})
