/**
 * Records a session of the built program as `.github/session.svg`: the program runs at a pseudo-terminal in an empty project,
 * keys are typed, and what a terminal shows at chosen moments becomes the pictures of the animation. The model plays a
 * script, all else is as it is: the tools, the questions, the sandbox, the screen.
 */
import * as pty from "@lydell/node-pty"
import xterm from "@xterm/headless"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const [columns, rows] = [84, 26]
const file =
  "export const sum = (parts) => {\n  let total = 0\n  for (const part of parts) total += Math.abs(part)\n  return total\n}\n"
const test =
  'import { sum } from "./sum.js"\nif (sum([1, -2]) !== -1) {\n  console.error(`sum([1, -2]) is ${sum([1, -2])}, not -1`)\n  process.exit(1)\n}\nconsole.log("1 test, green")\n'
const answer = `The sum is right for **negative** numbers now:

| parts     | before | now |
|-----------|-------:|----:|
| \`[1, 2]\`  |      3 |   3 |
| \`[1, -2]\` |      3 |  -1 |

\`\`\`js
for (const part of parts) total += part
\`\`\`
`
const steps = [
  { text: "I run the test first.", tools: [{ name: "run_command", params: { command: "node test.js" } }] },
  {
    text: "`sum` takes the absolute value of each part. That is to go.",
    tools: [
      { name: "edit_file", params: { path: "sum.js", old_text: "total += Math.abs(part)", new_text: "total += part" } }
    ]
  },
  { tools: [{ name: "run_command", params: { command: "node test.js" } }] },
  { text: answer, chunks: 60, chunkDelay: "15 millis", usage: { input: 4_200, output: 310 } }
]

// -----------------------------------------------------------------------------------------------------------------
// the session
// -----------------------------------------------------------------------------------------------------------------

const place = mkdtempSync(join(tmpdir(), "assent-"))
const at = (...parts) => join(place, ...parts)
for (const name of ["sums", "config", "state", "home"]) mkdirSync(at(name))
writeFileSync(at("sums/sum.js"), file)
writeFileSync(at("sums/test.js"), test)
writeFileSync(at("sums/package.json"), '{ "type": "module" }\n')
writeFileSync(at("script.json"), JSON.stringify({ version: 1, agents: { main: steps } }))

const terminal = new xterm.Terminal({ cols: columns, rows, scrollback: 0, allowProposedApi: true })
const child = pty.spawn(
  process.execPath,
  [join(root, "dist/bin/assent.js"), "chat", "--model", `script:${at("script.json")}`],
  {
    name: "xterm-256color",
    cols: columns,
    rows,
    cwd: at("sums"),
    env: {
      PATH: process.env.PATH,
      HOME: at("home"),
      TERM: "xterm-256color",
      ASSENT_CONFIG_DIR: at("config"),
      ASSENT_STATE_DIR: at("state"),
      ASSENT_STATUS_LINE: "off"
    }
  }
)
const looks = new Set()
child.onData((data) => terminal.write(data, () => looks.forEach((look) => look())))

const text = () =>
  Array.from({ length: rows }, (_, row) => terminal.buffer.active.getLine(row).translateToString(true))
    .join("\n")
    .trimEnd()
const sees = (what) =>
  new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`This was never seen: ${what}\n${text()}`)), 20_000)
    const look = () => {
      if (!what.test(text())) return
      looks.delete(look)
      clearTimeout(late)
      resolve()
    }
    looks.add(look)
    look()
  })
const pause = (millis) => new Promise((resolve) => setTimeout(resolve, millis))

/** What is on the screen, and for how many seconds it is shown. */
const pictures = []
const picture = (seconds) => pictures.push({ svg: drawn(), seconds })

try {
  await sees(/\n>$/)
  picture(1)
  const words = "the sum of negative numbers is wrong, mend it"
  for (const part of words.split(/(?<= )/)) {
    child.write(part)
    await sees(new RegExp(`> .*${part.trim()}$`))
    picture(0.2)
  }
  child.write("\r")
  await sees(/run node test\.js[^]*answer>$/)
  picture(2.5)
  await pause(700)
  child.write("y")
  await sees(/exit 1[^]*Allow edit_file\?[^]*answer>$/)
  picture(4)
  await pause(700)
  child.write("y")
  await sees(/✓[^]*Allow run_command\?[^]*answer>$/)
  picture(2)
  await pause(700)
  child.write("y")
  await sees(/The sum is right/)
  picture(0.4)
  await sees(/parts/)
  picture(0.4)
  await sees(/\[1, -2\][^]*\n>$/)
  await sees(/total \+= part\n\n?>$/)
  picture(6)
} finally {
  child.kill("SIGKILL")
}

// -----------------------------------------------------------------------------------------------------------------
// the picture
// -----------------------------------------------------------------------------------------------------------------

const seconds = pictures.reduce((sum, one) => sum + one.seconds, 0)
const [width, height] = [columns * 8.4 + 32, rows * 18 + 32]
let begin = 0
const frames = pictures.map((one, index) => {
  const [from, to] = [(begin / seconds) * 100, ((begin += one.seconds) / seconds) * 100]
  const times = `0%{opacity:${index === 0 ? 1 : 0}}${from.toFixed(3)}%{opacity:1}${to.toFixed(3)}%,100%{opacity:0}`
  return {
    style: `@keyframes f${index}{${times}}#f${index}{animation:f${index} ${seconds.toFixed(1)}s step-end infinite}`,
    svg: `<g id="f${index}">${one.svg}</g>`
  }
})
writeFileSync(
  join(root, ".github/session.svg"),
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">
<title>A session: a test fails, an edit and two commands are allowed, and the answer has a table</title>
<style>text{font:14px ui-monospace,Menlo,Consolas,monospace;fill:#d8dee9;white-space:pre}.b{font-weight:bold}.d{opacity:.6}.i{font-style:italic}g{opacity:0}g:last-of-type{opacity:1}${frames
    .map(({ style }) => style)
    .join("")}</style>
<rect width="100%" height="100%" rx="8" fill="#1e222a"/>
${frames.map(({ svg }) => svg).join("\n")}
</svg>
`
)
rmSync(place, { recursive: true, force: true })

/** The rows of the screen as text elements; pieces of one style together. */
function drawn() {
  const palette = ["#4c566a", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d8dee9"]
  const escaped = (part) => part.replaceAll("&", "&amp;").replaceAll("<", "&lt;")
  return Array.from({ length: rows }, (_, row) => {
    const line = terminal.buffer.active.getLine(row)
    const pieces = []
    for (let column = 0; column < columns; column++) {
      const cell = line.getCell(column)
      const style = [cell.isBold() ? "b" : "", cell.isDim() ? "d" : "", cell.isItalic() ? "i" : ""].join("")
      const color = cell.isFgDefault() ? "" : (palette[cell.getFgColor() % 8] ?? "")
      const key = `${style} ${color}`
      if (pieces.at(-1)?.key === key) pieces.at(-1).text += cell.getChars() || " "
      else pieces.push({ key, style, color, column, text: cell.getChars() || " " })
    }
    const spans = pieces
      .filter((piece) => piece.text.trim() !== "")
      // Wherever it was recorded.
      .map((piece) => ({ ...piece, text: piece.text.replaceAll(place, "/home/ada") }))
      .map(({ color, column, style, text }) => {
        const words = style === "" ? "" : ` class="${[...style].join(" ")}"`
        const fill = color === "" ? "" : ` style="fill:${color}"`
        const length = text.trimEnd().length
        return `<tspan x="${(16 + column * 8.4).toFixed(1)}" textLength="${(length * 8.4).toFixed(1)}"${words}${fill}>${escaped(text.trimEnd())}</tspan>`
      })
    return spans.length === 0 ? "" : `<text y="${30 + row * 18}">${spans.join("")}</text>`
  }).join("")
}
