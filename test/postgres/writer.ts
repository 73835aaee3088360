/** A process that writes to a session until it is killed: batches of three, and a line when each is acknowledged. */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { SessionId } from "../../src/core/Id.js"
import * as PostgresStore from "../../src/store/PostgresStore.js"
import { draft, received } from "../kit/JournalSample.js"

const [url = "", root = "", from = "0"] = process.argv.slice(2)

const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

Effect.gen(function* () {
  const store = yield* PostgresStore.make({
    url: Redacted.make(url),
    process: { pid: process.pid, host: "here", isAlive }
  })
  const lease = yield* store.lock(root as SessionId)
  for (let batch = Number(from); ; batch++) {
    yield* lease.append([0, 1, 2].map((at) => draft(received(`${batch}/${at}`, "x"), root as SessionId)))
    process.stdout.write(`${batch}\n`)
  }
}).pipe(Effect.scoped, Effect.runPromise)
