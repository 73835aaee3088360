/**
 * Copies the guide into `docs`, for the package: `node .ci/guide.mjs`.
 *
 * `docs` is one directory nearer to the root than `.github/guide`, so links to files outside of the guide get shorter.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"

rmSync("docs", { recursive: true, force: true })
mkdirSync("docs")
for (const name of readdirSync(".github/guide")) {
  writeFileSync(`docs/${name}`, readFileSync(`.github/guide/${name}`, "utf8").replaceAll("](../../", "](../"))
}
