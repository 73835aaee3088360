/** A store of one's own: sessions in any `KeyValueStore`, here in memory. `SessionStoreSuite` says whether it may be trusted. */
import * as KeyValueStore from "@effect/platform/KeyValueStore"
import type { SessionLease } from "assent"
import * as KeyValueSessionStore from "assent/store/KeyValueSessionStore"
import { SessionStoreSuite } from "assent/testing"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

/** What every test begins with: an empty store, which is opened once for each process. */
const fresh = Effect.map(Layer.build(KeyValueStore.layerMemory), (context) => {
  const values = Context.get(context, KeyValueStore.KeyValueStore)
  return (process: SessionLease.Process) =>
    Effect.provideService(KeyValueSessionStore.make({ process }), KeyValueStore.KeyValueStore, values)
})

/** In a test: `for (const { check, name } of checks) it.effect(name, () => check)`. */
export const checks = SessionStoreSuite.make({ fresh })
