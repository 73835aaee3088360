/** Says once which judges are not installed, so that their tests are skipped. */
import * as Judged from "./Judged.js"

const wanted = (process.env["ASSENT_REQUIRE"] ?? "").split(",")

export default function setup(): void {
  for (const folder of Judged.folders) {
    if (Judged.isInstalled(folder)) continue
    const how = `npm run judges:${folder} installs them and runs their tests`
    if (wanted.includes(folder)) throw new Error(`The judges of ${folder.toUpperCase()} are not installed: ${how}.`)
    process.stderr.write(`No judges of ${folder.toUpperCase()} here, so their tests are skipped: ${how}.\n`)
  }
}
