import { assert, it } from "@effect/vitest"
import * as CodeColors from "../../src/terminal/CodeColors.js"

it("colours code of each language, however few were learned ahead", () => {
  CodeColors.learn()
  assert.isAbove(CodeColors.ofCode("let one = 1", "yaml; swift")?.lines.length ?? 0, 0)
  assert.strictEqual(CodeColors.ofCode("const one = 1", "ts")?.lines[0]?.[0]?.text, "const")
  assert.isFalse(CodeColors.learn())
})
