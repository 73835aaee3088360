import * as Effect from "effect/Effect"
import { workloads as ours } from "./system/Assent.js"
import { workloads as limit } from "./system/Limit.js"
const [, , system, name, times] = process.argv
const workload = (system === "limit" ? limit : ours)[name ?? ""]
if (workload === undefined) throw new Error("no such")
await Effect.runPromise(Effect.scoped(Effect.gen(function* () {
  const w = yield* workload
  yield* w.sample(Number(process.argv[5] ?? 1500))
  for (let i = 0; i < Number(times ?? 5); i++) process.stdout.write(JSON.stringify(yield* w.sample(400)) + "\n")
})))
process.exit(0)
