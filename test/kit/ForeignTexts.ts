/** Texts as others may write them, by kinds that are hard to parse, to colour or to draw, in any size. */
import { common } from "lowlight"

export interface ForeignText {
  readonly kind: string
  /** About so many characters. */
  readonly make: (size: number) => string
}

/** The names of 40 languages, as code fences and names of files call them. */
export const languages: ReadonlyArray<string> = [...Object.keys(common), "tsx", "html", "mts"]

const shapes: ReadonlyArray<readonly [kind: string, make: ForeignText["make"]]> = [
  ["prose", repeated("Words of *prose* with `code`, **weight** and [a link](https://example.com/a?b=c). ")],
  ["paragraphs", repeated("A paragraph of words.\nIts second line.\n\n")],
  ["one line of letters", repeated("x")],
  ["one line of words", repeated("word ")],
  ["headings", repeated("# Heading\n\n## Second\n")],
  ["table", (size) => `| a | b | c |\n|---|---|---|\n${repeated("| one | `two` | **three** |\n")(size)}`],
  ["table of many columns", (size) => `${"|a".repeat(2_000)}|\n${"|-".repeat(2_000)}|\n${repeated("|b")(size)}`],
  ["table without ends", (size) => `a|b\n-|-\n${repeated("|")(size)}`],
  ["list", repeated("- an item of *words*\n")],
  ["list of numbers", (size) => lines(size, (index) => `${index + 1}. item ${index}`)],
  ["list in lists", (size) => lines(size, (index) => `${"  ".repeat(index % 12)}- item`)],
  ["list without end of depth", (size) => lines(size, (index) => `${"  ".repeat(Math.min(index, 400))}- item`)],
  ["marks of lists", repeated("- ")],
  ["fences in lists", (size) => lines(size, () => "- item\n\n  ```ts\n  const a = `${b}`\n  ```\n")],
  [
    "fences in lists in lists",
    (size) =>
      lines(
        size,
        (at) =>
          `${"  ".repeat(at % 4)}- a\n${"  ".repeat((at % 4) + 1)}\`\`\`xml\n${"  ".repeat((at % 4) + 1)}<script>\n${"  ".repeat((at % 4) + 1)}\`\`\``
      )
  ],
  ["fences that stay open in lists", repeated("- item\n  ```js\n  `${`${\n")],
  ["quotes", repeated("> quoted *words*\n")],
  ["quotes in quotes", repeated("> > > > quoted\n\n")],
  ["marks of quotes", repeated(">")],
  ["links", repeated("[a](b) ")],
  ["open links", repeated("[a](")],
  ["brackets", repeated("[")],
  ["images", repeated("![a](b.png) ")],
  ["references", (size) => lines(size, (index) => `[r${index}]: https://example.com/${index}`)],
  ["named links", repeated("[a][b] ")],
  ["html", repeated("<div><b>bold</b></div>\n\n")],
  ["scripts", repeated("<script>")],
  ["open tags", repeated("<a ")],
  ["comments", repeated("<!-- ")],
  ["references of characters", repeated("&amp;&lt;&#39; ")],
  ["combined marks", repeated("a\u0301\u0302")],
  ["marks on one letter", (size) => `a${repeated("\u0301")(size)}`],
  ["joined pictures", repeated("👩‍👩‍👧‍👦")],
  ["wide letters", repeated("漢字")],
  ["wide words", repeated("漢字 かな\n")],
  ["letters of many scripts", repeated("שלום مرحبا नमस्ते ")],
  ["flags", repeated("🇩🇪")],
  ["emphases", repeated("*a ")],
  ["underscores", repeated("_a")],
  ["stars", repeated("*")],
  ["strong words", repeated("**a** ")],
  ["backticks", repeated("`a``b```")],
  ["crossed words", repeated("~~a ")],
  ["mixed marks", repeated("***a_`[")],
  ["few mixed marks", repeated("word word wo ***a_`[ word <b ")],
  ["open brackets in words", repeated("some words [and ")],
  ["escapes", repeated("\\*")],
  ["rules", repeated("---\n")],
  ["line ends", repeated("\n")],
  ["blanks", repeated(" ")],
  ["blanks and a letter", (size) => `a${repeated(" ")(size)}b`],
  ["blanks in words", (size) => lines(size, () => `a${" ".repeat(900)}b`)],
  ["tabs", repeated("a\tb\t")],
  ["addresses", repeated("https://example.com/ www.example.com a@example.com ")],
  ["one address", (size) => `https://example.com/${repeated("a.b/")(size)}`],
  ["addresses of mail", repeated("a.a-a_")],
  ["control characters", repeated("\x1b[31m\x00\x9b\u202e")],
  ["broken sequences", repeated("\x1b]0;")],
  ["unknown language", (size) => `\`\`\`nothing\n${repeated("word\n")(size)}`],
  ["tasks", repeated("- [ ] task\n- [x] done\n")],
  ["underlined headings", repeated("Heading\n===\n")],
  ["indented code", repeated("    code here\n")]
]
export const markdown: ReadonlyArray<ForeignText> = shapes.map(([kind, make]) => ({ kind, make }))

/** Code of a language: usual lines, and lines that highlighters find hard. */
export const code: ReadonlyArray<ForeignText> = [
  { kind: "usual", make: repeated(usual()) },
  { kind: "one line", make: repeated(usual().replaceAll("\n", " ")) },
  { kind: "scripts", make: repeated("<script>") },
  { kind: "scripts in lines", make: repeated("<script>\n") },
  { kind: "templates", make: repeated("`${") },
  { kind: "templates in lines", make: repeated("`${\n") },
  { kind: "brackets", make: repeated("([{") },
  { kind: "quotes", make: repeated("\"'") },
  { kind: "comments", make: repeated("/*(*{-#|<!--") },
  { kind: "letters", make: repeated("a") },
  { kind: "words", make: repeated("function class a.b::c<T> => ") },
  { kind: "numbers", make: repeated("1.5e10, 0x1f, ") },
  { kind: "colons", make: repeated("a: b: ") },
  { kind: "blanks", make: repeated("a    ") }
]

/** What a command may print. */
export const printed: ReadonlyArray<ForeignText> = [
  { kind: "lines", make: repeated("a line of a log\n") },
  { kind: "one line", make: repeated("x") },
  { kind: "line ends", make: repeated("\n") },
  { kind: "styles", make: repeated("\x1b[31mred\x1b[0m plain\n") },
  { kind: "styles only", make: repeated("\x1b[1;38;5;196;48;2;1;2;3m") },
  { kind: "one long style", make: (size) => `\x1b[${repeated("1;")(size)}m` },
  { kind: "styles on one line", make: repeated("\x1b[31mr\x1b[0m") },
  { kind: "bars of progress", make: repeated("\r50 % [=====     ]") },
  { kind: "carriage returns", make: repeated("\r") },
  { kind: "sequences", make: repeated("\x1b[2J\x1b]0;title\x07\x1b[10;10H") },
  { kind: "open sequences", make: repeated("\x1b]0;") },
  { kind: "one open sequence", make: (size) => `\x1b]0;${repeated("a")(size)}` },
  { kind: "combined marks", make: repeated("a\u0301") },
  { kind: "wide letters", make: repeated("漢字\n") },
  { kind: "control characters", make: repeated("\x00\x9b\u202e") }
]

export const yaml: ReadonlyArray<ForeignText> = [
  { kind: "fields", make: (size) => lines(size, (index) => `field_${index}: value`) },
  { kind: "short fields", make: (size) => lines(size, (index) => `${index.toString(36)}:`) },
  { kind: "list", make: (size) => `plugins:\n${repeated("- a\n")(size)}` },
  { kind: "list on one line", make: (size) => `plugins: [${repeated("a,")(size)}a]` },
  { kind: "fields on one line", make: (size) => `gc: {${repeated("a: b, ")(size)}a: b}` },
  { kind: "text", make: (size) => `description: ${repeated("words ")(size)}` },
  { kind: "text in lines", make: (size) => `description: |\n${repeated("  a line\n")(size)}` },
  { kind: "text in quotes", make: (size) => `description: "${repeated("\\u0041")(size)}"` },
  { kind: "anchors", make: (size) => lines(size, (index) => `a${index}: &x${index} v`) },
  { kind: "aliases", make: (size) => `a: &a [b]\nc:\n${repeated("- *a\n")(size)}` },
  { kind: "comments", make: repeated("# words\n") },
  { kind: "documents", make: repeated("---\na: b\n") },
  { kind: "tags", make: (size) => `a:\n${repeated("- !!str b\n")(size)}` },
  { kind: "keys that ask", make: repeated("? a\n") },
  { kind: "errors", make: repeated("a: b: c\n") },
  { kind: "quotes", make: repeated("'\n") },
  { kind: "colons", make: repeated(": ") },
  { kind: "brackets", make: repeated("[]") },
  { kind: "the same key", make: repeated("a: b\n") }
]

export const diffs: ReadonlyArray<ForeignText> = [
  {
    kind: "lines that change",
    make: (size) =>
      patch(
        Array.from({ length: size / 40 }, (_, at) => [`-const a${at} = "${at}"`, `+const a${at} = "${at + 1}"`]).flat()
      )
  },
  { kind: "long lines", make: (size) => patch([`-${"a ".repeat(size / 4)}`, `+${"b ".repeat(size / 4)}`]) },
  { kind: "short lines", make: (size) => patch(repeated("+\n")(size).trimEnd().split("\n")) },
  {
    kind: "combined marks",
    make: (size) => patch(Array.from({ length: size / 100 }, () => `+${"a\u0301".repeat(50)}`))
  },
  { kind: "scripts", make: (size) => patch(Array.from({ length: size / 90 }, () => `+${"<script>".repeat(11)}`)) },
  { kind: "same lines", make: (size) => patch([...repeated(" same\n")(size).trimEnd().split("\n"), "+a"]) },
  {
    kind: "hunks",
    make: (size) =>
      `--- a/a.html\n+++ b/a.html\n${lines(size, (at) => `@@ -${at * 9 + 1},1 +${at * 9 + 1},1 @@\n-a\n+b`)}`
  },
  { kind: "ends of lines", make: repeated("@@ -1 +1 @@\n") }
]

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

function repeated(unit: string) {
  return (size: number): string => unit.repeat(Math.ceil(size / unit.length))
}

function lines(size: number, line: (index: number) => string): string {
  let text = ""
  for (let index = 0; text.length < size; index++) text += `${line(index)}\n`
  return text
}

function patch(changes: ReadonlyArray<string>): string {
  const count = (other: string) => changes.filter((line) => !line.startsWith(other)).length
  return `--- a/a.html\n+++ b/a.html\n@@ -1,${count("+")} +1,${count("-")} @@\n${changes.join("\n")}\n`
}

function usual(): string {
  return `import { a } from "b" // a comment
/* and another */
export class Name<T> extends Other implements Third {
  private value: number = 0x1f + 1.5e10
  @annotated def method(self, other: list[int]) -> str:
    return f"text {value} and \${other}" if value > 10 else None
}
fn main() { let x = vec![1, 2]; println!("{}", x); } # comment
SELECT a, b FROM table WHERE c = 'text' AND d IS NOT NULL;
<div class="name" id='x'>text &amp; more</div> { color: #fff; margin: 0 auto }
key: value
[section]
echo "$HOME" | grep -v '^#' && exit 1
`
}
