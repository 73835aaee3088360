/**
 * A plugin for the bundler: writes beside the output which packages are in it, and under what terms. Most licences demand
 * that their text goes with every copy.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

/** The directory of the package that a module belongs to; nothing for one of ours. */
const packageOf = (id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(id)?.[0]

const noticeOf = (directory) => {
  const { author, license, name, repository, version } = JSON.parse(
    readFileSync(join(directory, "package.json"), "utf8")
  )
  if (typeof license !== "string") throw new Error(`${name} says nothing of its licence`)
  const texts = readdirSync(directory)
    .filter((file) => /^(?:licen[cs]e|copying|notice)/i.test(file))
    .map((file) => readFileSync(join(directory, file), "utf8").trim())
  const by = [author?.name ?? author, repository?.url ?? repository].filter((part) => part !== undefined).join(", ")
  return [`${name} ${version}: ${license}\n${by}`, ...texts].join("\n\n")
}

export const notices = (fileName) => ({
  name: "notices",
  generateBundle(_, bundle) {
    const modules = Object.values(bundle).flatMap((chunk) => (chunk.type === "chunk" ? chunk.moduleIds : []))
    const directories = new Set(modules.flatMap((id) => packageOf(id) ?? []))
    const source = [...directories]
      .sort()
      .map(noticeOf)
      .join(`\n\n${"-".repeat(80)}\n\n`)
    this.emitFile({ type: "asset", fileName, source: `${source}\n` })
  }
})
