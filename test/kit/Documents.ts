/** The documents for users, README and guide, and what stands in them. */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"

export interface Document {
  readonly path: string
  readonly text: string
}

/** A block of code. */
export interface Block {
  readonly document: string
  readonly language: string
  readonly text: string
  /** The file it is taken from, for TypeScript. */
  readonly file: string | undefined
}

const read = (path: string): Document => ({ path, text: readFileSync(path, "utf8") })

/** The Markdown files below a directory, those of subdirectories too. What npm installed is of others. */
export const below = (directory: string): ReadonlyArray<Document> =>
  readdirSync(directory, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md") && !/(?:^|[\\/])node_modules[\\/]/.test(name))
    .sort()
    .map((name) => read(`${directory}/${name}`))

export const readme: Document = read("README.md")

export const guide: ReadonlyArray<Document> = below(".github/guide")

export const forUsers: ReadonlyArray<Document> = [readme, ...guide]

export const blocks: ReadonlyArray<Block> = forUsers.flatMap(({ path, text }) =>
  Array.from(
    text.matchAll(/(?:<!-- (\S+) -->\n\n)?```(\w+)\n([^]*?)```/g),
    ([, file, language = "", block = ""]): Block => ({ document: path, language, text: block, file })
  )
)

/** The lines of shell blocks, without comments. */
export const commands: ReadonlyArray<string> = blocks
  .filter(({ language }) => language === "sh")
  .flatMap(({ text }) => text.trim().split("\n"))
  .map((line) => line.replace(/#.*/, "").trim())
  .filter((line) => line !== "")

/** Links of a Markdown file to files or headings that are not there. A directory is a file, too. */
export const deadLinks = ({ path, text }: Document): ReadonlyArray<string> =>
  Array.from(text.replace(/```[^]*?```|`[^`\n]*`/g, "").matchAll(/\]\(([^)\s]+)\)/g), ([, target = ""]) => target)
    .filter((target) => !/^\w+:/.test(target))
    .filter((target) => {
      const [file = "", heading] = target.split("#")
      const place = file === "" ? path : join(dirname(path), file)
      return !existsSync(place) || (heading !== undefined && !anchors(read(place).text).includes(heading))
    })
    .map((target) => `${path}: ${target}`)

/** As GitHub names headings. */
const anchors = (text: string): ReadonlyArray<string> =>
  Array.from(text.matchAll(/^#+ (.*)$/gm), ([, heading = ""]) =>
    heading
      .toLowerCase()
      .replace(/[^\w\- ]/g, "")
      .replaceAll(" ", "-")
  )
