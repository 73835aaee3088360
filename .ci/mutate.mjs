/**
 * Changes one condition of the core at a time, and looks whether the tests of its room fail:
 * `node .ci/mutate.mjs [--count 300] [--seed 1] [--rooms turn,session]`.
 *
 * A mutant that its room's folder does not kill stands for a promise that no test holds, or changes nothing that anybody can
 * see. It works on a copy of the sources, so the checkout stays as it is.
 */
import { spawn } from "node:child_process"
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { parseArgs } from "node:util"
import ts from "typescript"

const { values } = parseArgs({
  options: {
    count: { type: "string", default: "300" },
    seed: { type: "string", default: "1" },
    rooms: { type: "string", default: "permission,broker,bridge,turn,session,journal,inbox" }
  }
})
const rooms = values.rooms.split(",")
/** Milliseconds after which a mutant counts as killed, as a multiple of what the unchanged room takes. */
const patience = 5

const { SyntaxKind } = ts

/** What a token becomes. Both sides of a pair differ in a value that some caller must see. */
const swapped = new Map([
  [SyntaxKind.EqualsEqualsEqualsToken, "!=="],
  [SyntaxKind.ExclamationEqualsEqualsToken, "==="],
  [SyntaxKind.LessThanToken, "<="],
  [SyntaxKind.LessThanEqualsToken, "<"],
  [SyntaxKind.GreaterThanToken, ">="],
  [SyntaxKind.GreaterThanEqualsToken, ">"],
  [SyntaxKind.AmpersandAmpersandToken, "||"],
  [SyntaxKind.BarBarToken, "&&"],
  [SyntaxKind.PlusToken, "-"],
  [SyntaxKind.MinusToken, "+"],
  [SyntaxKind.PlusEqualsToken, "-="],
  [SyntaxKind.TrueKeyword, "false"],
  [SyntaxKind.FalseKeyword, "true"]
])

/** A copy: the checkout stays as it is, and may go on. */
const directory = mkdtempSync(join(tmpdir(), "assent-mutants-"))
const read = (path) => readFileSync(join(directory, path), "utf8")

/** Every place of a file that can be changed, with the text that takes its place. */
const mutantsOf = (room, file) => {
  const path = join("src", room, file)
  const source = ts.createSourceFile(path, read(path), ts.ScriptTarget.Latest, true)
  const found = []
  const add = (node, text) => {
    const start = node.getStart(source)
    const line = source.getLineAndCharacterOfPosition(start).line + 1
    found.push({ room, path, line, start, end: node.end, text, was: source.text.slice(start, node.end) })
  }
  const visit = (node) => {
    // Types and imports do not run.
    if (ts.isTypeNode(node) || ts.isInterfaceDeclaration(node) || ts.isImportDeclaration(node)) return
    if (ts.isBinaryExpression(node) && swapped.has(node.operatorToken.kind))
      add(node.operatorToken, swapped.get(node.operatorToken.kind))
    else if (node.kind === SyntaxKind.TrueKeyword || node.kind === SyntaxKind.FalseKeyword)
      add(node, swapped.get(node.kind))
    else if (ts.isPrefixUnaryExpression(node) && node.operator === SyntaxKind.ExclamationToken)
      add(node, node.operand.getText(source))
    else if (ts.isIfStatement(node) || ts.isConditionalExpression(node)) {
      const condition = ts.isIfStatement(node) ? node.expression : node.condition
      add(condition, "true")
      add(condition, "false")
    } else if (ts.isExpressionStatement(node) && !ts.isYieldExpression(node.expression)) add(node, ";")
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}

/** Numbers that look random, and are the same for one seed. */
const random = (seed) => () => {
  seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
  return seed / 2 ** 32
}

const sampleOf = (all, count, next) => {
  const left = [...all]
  return Array.from({ length: Math.min(count, left.length) }, () => left.splice(Math.floor(next() * left.length), 1)[0])
}

/** Runs the tests of a room: how they ended, and how long that took. */
const test = (directory, room, atMost) =>
  new Promise((done) => {
    const began = Date.now()
    const vitest = resolve("node_modules/vitest/vitest.mjs")
    const args = [vitest, "run", `test/${room}/`, "--project", "tests", "--bail", "1", "--silent=true"]
    const child = spawn(process.execPath, args, { cwd: directory, detached: true, stdio: ["ignore", "pipe", "pipe"] })
    let said = ""
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (said += text))
    const timer = setTimeout(() => process.kill(-child.pid, "SIGKILL"), atMost)
    child.on("close", (code, signal) => {
      clearTimeout(timer)
      const by = /FAIL\s+(?:\|\w+\|\s+)?(.+)/.exec(said)?.[1] ?? "an error outside of tests"
      done({ passed: code === 0, by: signal === null ? by : "a test that does not end", took: Date.now() - began })
    })
  })

const counts = new Map(rooms.map((room) => [room, { killed: 0, survived: 0 }]))
try {
  for (const part of ["src", "test", ".ci", "package.json", "tsconfig.json", "vitest.config.ts"])
    cpSync(part, join(directory, part), { recursive: true, filter: (path) => !path.includes("node_modules") })
  for (const part of ["node_modules", "dist", "README.md", ".github"]) symlinkSync(resolve(part), join(directory, part))
  const all = rooms.flatMap((room) =>
    readdirSync(join(directory, "src", room))
      .filter((file) => file.endsWith(".ts"))
      .flatMap((file) => mutantsOf(room, file))
  )
  const sample = sampleOf(all, Number(values.count), random(Number(values.seed)))
  const usual = new Map()
  for (const room of new Set(sample.map(({ room }) => room))) {
    const { by, passed, took } = await test(directory, room, 1_800_000)
    if (!passed) throw new Error(`The tests of ${room} fail without a mutant: ${by}`)
    usual.set(room, took)
  }
  for (const { end, line, path, room, start, text, was } of sample) {
    const whole = read(path)
    writeFileSync(join(directory, path), whole.slice(0, start) + text + whole.slice(end))
    const { by, passed } = await test(directory, room, patience * usual.get(room) + 10_000)
    writeFileSync(join(directory, path), whole)
    counts.get(room)[passed ? "survived" : "killed"]++
    const change = `${was.replace(/\s+/g, " ").slice(0, 60)} → ${text}`
    console.log(`${passed ? "SURVIVED" : "killed  "} ${path}:${line}  ${change}${passed ? "" : `  by ${by}`}`)
  }
  console.table(
    Object.fromEntries([...counts].map(([room, count]) => [room, { ...count, of: count.killed + count.survived }]))
  )
  const [killed, survived] = ["killed", "survived"].map((end) =>
    [...counts.values()].reduce((sum, of) => sum + of[end], 0)
  )
  console.log(
    `${killed} of ${killed + survived} mutants are killed by the tests of their room, of ${all.length} possible ones.`
  )
} finally {
  rmSync(directory, { recursive: true, force: true })
}
