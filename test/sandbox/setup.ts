/** Says once that the tests of the sandbox are skipped, where they are. */
import * as Bubblewrap from "../kit/Bubblewrap.js"

export default function setup(): void {
  if (Bubblewrap.isPossible || process.env["ASSENT_REQUIRE"]?.includes("sandbox") === true) return
  process.stderr.write("No sandbox here, so its tests are skipped: it takes bubblewrap.\n")
}
