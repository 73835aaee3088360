/**
 * A run in the protocol of a page. The process that has the session makes the lines, and the one that has the page's
 * connection sends them.
 *
 * ```
 *   page ─► input ─► Runs ─► pieces ─┬─ AgUi ───────┬─► lines ─► response
 *                                    └─ AiSdkStream ─┘
 * ```
 */
import type { HttpServerResponse } from "@effect/platform/HttpServerResponse"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as AgUi from "./AgUi.js"
import * as AiSdkStream from "./AiSdkStream.js"
import * as Api from "./Api.js"
import type { Parting } from "./EventStream.js"
import type * as Refusal from "./Refusal.js"
import type { End, Piece } from "./RunProjection.js"
import type * as Runs from "./Runs.js"

/** What a page sent. */
export const Page = Schema.Union(
  Schema.TaggedStruct("AgUi", { input: Api.RunAgentInput }),
  Schema.TaggedStruct("AiSdk", { input: Api.ChatInput }),
  /** It was loaded again, and wants the running turn. */
  Schema.TaggedStruct("AiSdkAgain", { chat: Schema.String })
)
export type Page = typeof Page.Type

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Gives the answers and the words. Yields the lines; nothing when no turn runs that the page could see again. */
export const begin = (
  runs: Runs.Runs,
  session: Runs.Session,
  page: Page,
  by: Runs.By
): Effect.Effect<Stream.Stream<string> | undefined, Refusal.Refusal> => {
  const begun = (start: Either.Either<Runs.Start, string>): Effect.Effect<Stream.Stream<Piece>, Refusal.Refusal> =>
    Either.isRight(start)
      ? runs.begin(session, start.right, by)
      : Effect.succeed(Stream.make<[End]>({ _tag: "Failed", code: "not_taken", message: start.left }))
  switch (page._tag) {
    case "AgUi":
      return Effect.map(begun(AgUi.startOf(page.input)), (pieces) => AgUi.lines(pieces, page.input))
    case "AiSdk":
      return Effect.map(begun(AiSdkStream.startOf(page.input)), (pieces) => AiSdkStream.lines(pieces, page.input))
    case "AiSdkAgain":
      return Effect.flatMap(runs.current(session), (last) => {
        if (last === undefined) return Effect.succeed(undefined)
        const { input, start } = AiSdkStream.again(page.chat, last)
        return Effect.map(begun(Either.right(start)), (pieces) => AiSdkStream.lines(pieces, input))
      })
  }
}

// -----------------------------------------------------------------------------------------------------------------
// getters
// -----------------------------------------------------------------------------------------------------------------

/** The requests that the page answers or withdraws, and whether it has words for a turn. */
export const contentOf = (page: Page): { readonly answers: ReadonlyArray<string>; readonly hasWords: boolean } => {
  if (page._tag === "AiSdkAgain") return { answers: [], hasWords: false }
  const start = page._tag === "AgUi" ? AgUi.startOf(page.input) : AiSdkStream.startOf(page.input)
  // Nothing is taken of what cannot be read.
  if (Either.isLeft(start)) return { answers: [], hasWords: false }
  const { resume, words } = start.right
  return { answers: resume.map(({ requestId }) => requestId), hasWords: words.length > 0 }
}

// -----------------------------------------------------------------------------------------------------------------
// conversions
// -----------------------------------------------------------------------------------------------------------------

/** What a page gets at the end of a run that is cut off. */
export const farewell = ({ _tag }: Page, message: string): string =>
  _tag === "AgUi" ? AgUi.farewell(message) : AiSdkStream.farewell(message)

/** The lines as a response. */
export const response = (
  page: Page,
  lines: Stream.Stream<string>,
  parting: Effect.Effect<Parting>
): HttpServerResponse => (page._tag === "AgUi" ? AgUi.response(lines, parting) : AiSdkStream.response(lines, parting))
