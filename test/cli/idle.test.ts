import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { existsSync, readFileSync } from "node:fs"
import * as DeltaServer from "../kit/DeltaServer.js"
import * as Program from "../kit/Program.js"
import * as Pseudo from "../kit/Pseudo.js"

/** Megabytes that a process has in memory. */
const residentOf = (pid: number) =>
  Effect.sync(() => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024)

describe.skipIf(!existsSync("/proc/self/status"))("an idle chat", () => {
  it.live(
    "takes 120 MB at most, also after an answer that took more",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const place = yield* Program.place
          const url = yield* DeltaServer.start(2_000)
          const args = ["chat", "--model", "openai-compatible/m", "--base-url", url]
          const screen = yield* Pseudo.start(place, args, { env: { OPENAI_COMPATIBLE_API_KEY: "key" } })
          yield* screen.sees((text) => text.endsWith("\n>"))
          yield* screen.type("go\r")
          const resident = residentOf(screen.pid)
          const until = (passes: (megabytes: number) => boolean) =>
            Effect.repeat(resident, { until: passes, schedule: Schedule.spaced("200 millis") }).pipe(
              Effect.timeoutFail({ duration: "80 seconds", onTimeout: () => "It never had so much or so little." })
            )
          yield* until((megabytes) => megabytes > 130)
          yield* screen.type("\u0003")
          yield* screen.sees((text) => text.includes("cancelled"))
          yield* until((megabytes) => megabytes <= 120)
          // It still is as it was.
          yield* screen.type("more")
          yield* screen.sees((text) => text.endsWith("\n> more"))
          assert.isAtMost(yield* resident, 125)
        })
      ),
    180_000
  )
})
