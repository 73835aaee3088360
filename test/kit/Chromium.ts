/** Chromium of this machine. It is found without starting it, and without vitest. */
import { accessSync, constants } from "node:fs"
import { delimiter, join } from "node:path"

const found = (process.env["PATH"] ?? "")
  .split(delimiter)
  .flatMap((directory) => ["chromium", "chromium-browser", "google-chrome"].map((name) => join(directory, name)))
  .find((file) => {
    try {
      accessSync(file, constants.X_OK)
      return true
    } catch {
      return false
    }
  })

/** With `ASSENT_REQUIRE` naming the browser, tests fail instead of being skipped. */
export const isWanted = found !== undefined || (process.env["ASSENT_REQUIRE"] ?? "").split(",").includes("browser")

/** Its file; a name that fails at its start if there is none. */
export const file = found ?? "chromium"
