/**
 * Looks at the packed library as others get it: `npm run check:package`. What resolves modules must find code and types
 * under every entry. It is an ES module throughout: `require` on old versions of Node finds nothing, and that is meant.
 *
 * The two programs bring a compiler of their own, so they come from the registry for this alone, not with `npm ci`.
 */
import { execFileSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const run = (program, ...words) => execFileSync(program, words, { stdio: ["ignore", "pipe", "inherit"] }).toString()
const show = (program, ...words) => execFileSync("npx", ["--yes", program, ...words], { stdio: "inherit" })

const directory = mkdtempSync(join(tmpdir(), "assent-package-"))
try {
  const [{ filename }] = JSON.parse(run("npm", "pack", "--ignore-scripts", "--json", "--pack-destination", directory))
  const packed = join(directory, filename)
  show("publint@0.3.25", "--strict", packed)
  show("@arethetypeswrong/cli@0.18.5", packed, "--profile", "esm-only", "--quiet")
} catch (problem) {
  // They have said what is wrong.
  if (problem.status === undefined) throw problem
  process.exitCode = 1
} finally {
  rmSync(directory, { recursive: true })
}
