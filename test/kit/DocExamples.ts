/** The examples in doc comments of `src`, each as a program of its own. */
import { readdirSync, readFileSync } from "node:fs"

export interface DocExample {
  /** A file name that says where it is from. */
  readonly name: string
  readonly text: string
}

/** Every block that is marked as TypeScript, and nothing where an `@example` has none. */
export const read = (): ReadonlyArray<DocExample> =>
  readdirSync("src", { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .sort()
    .flatMap((file) =>
      Array.from(
        readFileSync(`src/${file}`, "utf8").matchAll(
          /^ *\* @example\n(?! *\* ```ts\n)|^ *\* ```ts\n([^]*?)^ *\* ```$/gm
        ),
        ([, block = ""], index) => ({
          name: `${file.replace(/\.ts$/, "").replaceAll("/", "_")}_${index + 1}.ts`,
          text: block.replace(/^ *\* ?/gm, "")
        })
      )
    )
