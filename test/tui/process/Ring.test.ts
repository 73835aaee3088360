import { assert, describe, it } from "@effect/vitest"
import * as Output from "../../../src/tui/process/Output.js"

describe("somebody who is away", () => {
  it("is called by the desktop only where the terminal is known to do that, and else by the bell", () => {
    const table: ReadonlyArray<readonly [{ readonly [name: string]: string }, string]> = [
      [{ TERM: "xterm-256color" }, "bell"],
      [{}, "bell"],
      [{ TERM: "xterm-256color", TERM_PROGRAM: "Apple_Terminal" }, "bell"],
      [{ TERM: "xterm-256color", TERM_PROGRAM: "vscode" }, "bell"],
      [{ TERM: "xterm-256color", TERM_PROGRAM: "iTerm.app" }, "note9"],
      [{ TERM: "xterm-256color", TERM_PROGRAM: "WezTerm" }, "note9"],
      [{ TERM: "xterm-kitty" }, "note9"],
      [{ TERM: "foot-extra" }, "note777"],
      [{ TERM: "rxvt-unicode-256color" }, "note777"],
      // A multiplexer in between would show it, or swallow what follows.
      [{ TERM: "tmux-256color", TERM_PROGRAM: "iTerm.app" }, "bell"],
      [{ TERM: "screen", TERM_PROGRAM: "WezTerm" }, "bell"],
      [{ TERM: "xterm-kitty", TMUX: "/tmp/tmux-0/default,1,0" }, "bell"]
    ]
    for (const [env, call] of table) assert.strictEqual(Output.callOf(env), call, JSON.stringify(env))
  })

  it("hears the bell once, also where a note may be switched off", () => {
    for (const call of Object.values(Output.calls)) assert.match(call, /^[^\x07]*\x07$/)
  })
})
