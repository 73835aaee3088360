/** Forks of kept sessions, as the person who runs the command makes them: with a record in the audit. */
import type * as FileSystem from "@effect/platform/FileSystem"
import type * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as path from "node:path"
import type { SessionId } from "../core/Id.js"
import * as AuditTrail from "../audit/AuditTrail.js"
import * as Checkpoints from "../builtin/Checkpoints.js"
import * as SessionFork from "../journal/SessionFork.js"
import type * as SessionStore from "../journal/SessionStore.js"
import * as AuditLocation from "./local/AuditLocation.js"
import type { ConfigurationInvalid } from "./local/ConfigurationInvalid.js"
import * as Person from "./local/Person.js"
import * as GivenFlags from "./local/GivenFlags.js"
import type * as Settings from "./Settings.js"
import * as StoreLocation from "./StoreLocation.js"
import * as UserLocation from "./local/UserLocation.js"

/** Forks a session at the end of a turn, or at its end. What it was given is not touched, also while it runs. */
export const fork = (
  store: SessionStore.Service,
  settings: Settings.Settings,
  { at, id }: { readonly id: SessionId; readonly at: number | undefined }
): Effect.Effect<SessionFork.Forked, ConfigurationInvalid, FileSystem.FileSystem | Path.Path> =>
  Effect.flatMap(Person.name, (by) => forkBy(store, settings, { at, by, id })).pipe(
    Effect.mapError(StoreLocation.refuse)
  )

/** The same for a person who calls from elsewhere. */
export const forkBy = (
  store: SessionStore.Service,
  settings: Settings.Settings,
  { at, by, id }: { readonly id: SessionId; readonly at: number | undefined; readonly by: string }
): Effect.Effect<
  SessionFork.Forked,
  SessionFork.ForkFailure | ConfigurationInvalid,
  FileSystem.FileSystem | Path.Path
> =>
  Effect.gen(function* () {
    yield* UserLocation.prepare(settings)
    const trail = yield* trailOf(settings)
    const forked = yield* Effect.provideService(SessionFork.fork(store, id, { at, by }), AuditTrail.AuditTrail, trail)
    // It goes on with what its origin was given until now.
    const last = GivenFlags.read(settings, id)
    if (last !== undefined) yield* GivenFlags.write(settings, forked.rootSessionId, last)
    return forked
  }).pipe(Effect.scoped)

/** Where it is kept what files of a workspace were before tools changed them. */
export const checkpoints = ({ folder }: Pick<Settings.Settings, "folder">) =>
  Checkpoints.make(path.join(folder, "checkpoints"))

/** The audit for what a person does to a session from outside of it. */
export const trailOf = (settings: Pick<Settings.Settings, "auditKey" | "configDirectory"> & UserLocation.Folder) =>
  Effect.flatMap(
    Effect.promise(() => import("../audit/AuditFile.js")),
    (AuditFile) => AuditFile.make({ ...AuditLocation.archive(settings), key: settings.auditKey })
  )
