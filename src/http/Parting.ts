/**
 * Why a response that stays open ends before its source does: the server ends, or its caller may not read it any more.
 *
 * ```
 *   a stream begins ─► 10 s ─► does the caller still count? ─► 10 s ─► …
 *                                  └─ revoked, rotated, other rights, or not known for three looks ─► the stream ends
 * ```
 */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpApiSecurity from "@effect/platform/HttpApiSecurity"
import type * as HttpRouter from "@effect/platform/HttpRouter"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Cause from "effect/Cause"
import type * as Api from "./Api.js"
import type { Parting } from "./EventStream.js"
import type * as RouteTable from "./RouteTable.js"
import * as Share from "./Share.js"
import * as Tenancy from "./Tenancy.js"

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Completes when the caller of this request may no longer use its path. */
export const ofCaller = (
  { token }: Api.Authentication["Type"],
  caller: Api.Person,
  rule: RouteTable.Rule
): Effect.Effect<Parting, never, HttpRouter.HttpRouter.Provided> =>
  Effect.gen(function* () {
    const given = yield* HttpApiBuilder.securityDecode(HttpApiSecurity.bearer)
    const look = Effect.timeout(
      Effect.suspend(() => token(given)),
      longestLook
    )
    for (let unknown = 0; unknown < mostUnknown;) {
      yield* Effect.sleep(pause)
      const exit = yield* Effect.exit(look)
      if (Exit.isSuccess(exit)) {
        unknown = 0
        if (Share.keyOf(exit.value) !== Share.keyOf(caller)) return unauthorized("Your key is another person's now.")
        const permitted = yield* Effect.either(Tenancy.permit(exit.value, rule))
        if (permitted._tag === "Left") return unauthorized(permitted.left.message)
      } else {
        const failure = Option.getOrUndefined(Cause.failureOption(exit.cause))
        if (Predicate.isTagged(failure, "Unauthorized")) return unauthorized(failure.message)
        unknown++
      }
    }
    return unauthorized("The server cannot find out whether your key still counts.")
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const pause = "10 seconds"

const longestLook = "3 seconds"

/** A database that is slow for a moment ends no stream. */
const mostUnknown = 3

const unauthorized = (why: string): Parting => ({ event: "unauthorized", message: `${why} This stream ends.` })
