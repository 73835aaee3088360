/** What it takes to draw a model's Markdown, beside its parser and the colours of its code alone. */
import * as Effect from "effect/Effect"
import { Lexer } from "marked"
import { readFileSync } from "node:fs"
import * as CodeColors from "../../../src/tui/terminal/CodeColors.js"
import * as MarkdownStream from "../../../src/tui/terminal/MarkdownStream.js"
import * as Cpu from "../Cpu.js"
import type { Workload } from "../Workload.js"

const columns = 100
const megabyte = 1_000_000

/** A megabyte of headings, lists, tables, quotes and code: whole documents, and the same in pieces that a screen takes at once. */
const text = () => {
  const readme = readFileSync("README.md", "utf8")
  const documents = Array.from({ length: Math.ceil(megabyte / readme.length) }, () => readme)
  const all = documents.join("")
  return { documents, length: all.length, pieces: all.match(/[^]{1,4096}/g) ?? [] }
}

/** In the same process and in turns, so that the machine's speed is nothing of the ratio. */
export const markdown: Effect.Effect<Workload> = Effect.sync(() => {
  const { documents, length, pieces } = text()
  const alone = (): number => {
    let tokens = 0
    for (const document of documents)
      for (const token of new Lexer().lex(document)) {
        tokens++
        if (token.type === "code") CodeColors.ofCode(token["text"], token["lang"] ?? "")
      }
    return tokens
  }
  const drawn = (): number => {
    const stream = MarkdownStream.make({ color: true, colors: CodeColors.ofCode })
    let rows = 0
    const take = () => {
      for (let more = true; more;) {
        const taken = stream.take(columns)
        rows += taken.rows.length
        more = taken.more
      }
    }
    for (const piece of pieces) {
      stream.push(piece)
      take()
    }
    stream.end()
    take()
    return rows
  }
  const spent = (work: () => number): number => {
    const start = Cpu.now()
    if (work() < 1_000) throw new Error("Little of the text was drawn.")
    return (Cpu.now() - start) / 1_000
  }
  return {
    sample: (budget) =>
      Effect.sync(() => {
        let [ours, theirs, runs] = [0, 0, 0]
        while (runs === 0 || ours + theirs < budget) {
          theirs += spent(alone)
          ours += spent(drawn)
          runs++
        }
        return { ms: (ours / runs) * (megabyte / length), times: ours / theirs }
      })
  }
})
