/** Says once when the clients of AG-UI are not installed, so that their tests are skipped. */
import * as Judge from "./Judge.js"

const isWanted = (process.env["ASSENT_REQUIRE"] ?? "").split(",").includes("agui")

export default function setup(): void {
  if (Judge.versions.every(({ version }) => Judge.load(version) !== undefined)) return
  const how = "npm run judges:agui installs them and runs their tests"
  if (isWanted) throw new Error(`The clients of AG-UI are not installed: ${how}.`)
  process.stderr.write(`No clients of AG-UI here, so their tests are skipped: ${how}.\n`)
}
