/** Says once that the tests of the web console are skipped, where they are. */
import * as Chromium from "../kit/Chromium.js"

export default function setup(): void {
  if (!Chromium.isWanted)
    process.stderr.write("No browser here, so the tests of the web console are skipped: they take chromium.\n")
}
