/** Programs of the tests, as processes: each is one file with all that it loads, which starts in half the time. */
import * as Effect from "effect/Effect"
import { renameSync } from "node:fs"
import { build } from "rolldown"

/** Makes `file` of a module. It is there as a whole, also for others who start it meanwhile. */
export const make = (input: string, file: string): Effect.Effect<void> =>
  Effect.promise(async () => {
    const own = file.replace(/\.js$/, `-${process.pid}.js`)
    await build({
      input,
      platform: "node",
      logLevel: "silent",
      // These bring programs of the machine with them.
      external: /^(?:node:|@libsql|libsql|pg-native)/,
      output: { file: own, format: "esm", codeSplitting: false }
    })
    renameSync(own, file)
  })
