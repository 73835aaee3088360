/** `/model` without a name: the models there are, to pick one from; and what a name that is none may have meant. */
import * as Effect from "effect/Effect"
import type { Choice, DialogClosed, Service as Screen } from "../console/ConsoleScreen.js"
import * as Nearest from "../../core/Nearest.js"
import * as ChoiceList from "../terminal/ChoiceList.js"
import * as Display from "../terminal/Display.js"
import * as Glyphs from "../terminal/Glyphs.js"
import type { Listed } from "../../host/ModelList.js"

/** The models as rows, the present one first and marked. */
export const rows = (screen: Screen, models: ReadonlyArray<Listed>, present: string): ReadonlyArray<string> =>
  ChoiceList.numbered(choicesOf(models, present, Glyphs.of(screen))).map(({ label }) => label)

/** Asks until one is picked or named; nothing when the person wants none, or the present one. */
export const pick = (
  screen: Screen,
  models: ReadonlyArray<Listed>,
  present: string
): Effect.Effect<string | undefined> =>
  Effect.gen(function* () {
    const style = Display.style(screen.color)
    const choices = choicesOf(models, present, Glyphs.of(screen))
    const picking = screen.dialog("Which model?", (ask) => {
      const go = (more: ReadonlyArray<string>): Effect.Effect<string | undefined, DialogClosed> =>
        Effect.flatMap(
          ask({
            lines: [...more, style.dim("a number, some letters, or PROVIDER/MODEL; nothing for the present one")],
            choices,
            label: "model> ",
            keys: new Map(choices.length > 9 ? [] : choices.map((_, index) => [String(index + 1), []])),
            back: true,
            followUp: true,
            commands: false
          }),
          (line) => {
            const word = line.trim()
            if (word === "" || isSame(word, present)) return Effect.succeed(undefined)
            if (/^\d{1,3}$/.test(word)) {
              const chosen = choices[Number(word) - 1]
              if (chosen === undefined) return go([style.yellow(`Please name one of 1 to ${choices.length}.`)])
              return Effect.succeed(isSame(chosen.text, present) ? undefined : chosen.text)
            }
            return Effect.succeed(word)
          }
        )
      return go([])
    })
    return yield* Effect.catchTag(picking, "DialogClosed", () => Effect.succeed(undefined))
  })

/** A sentence about the model that was probably meant; nothing for one of these, or for one that is like none. */
export const meant = (name: string, refs: ReadonlyArray<string>): string | undefined => {
  if (refs.some((ref) => isSame(ref, name))) return undefined
  const wanted = name.toLowerCase()
  const ends = refs.filter((ref) => ref.toLowerCase().endsWith(`/${wanted}`))
  const parts = wanted.length < 3 ? [] : refs.filter((ref) => ref.toLowerCase().includes(wanted))
  const bare = new Map(refs.map((ref) => [ref.slice(ref.lastIndexOf("/") + 1), ref]))
  const nearest =
    ends[0] ?? Nearest.of(wanted, refs) ?? bare.get(Nearest.of(wanted, [...bare.keys()]) ?? "") ?? parts[0]
  return nearest === undefined ? undefined : `Did you mean ${Display.oneLine(nearest)}?`
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const isSame = (ref: string, other: string): boolean => longOf(ref) === longOf(other)

/** The stand-in has a short name and a long one. */
const longOf = (ref: string): string => (ref === "offline" ? "offline/offline" : ref)

/** Each with what is known of it. */
const choicesOf = (models: ReadonlyArray<Listed>, present: string, signs: Glyphs.Glyphs): ReadonlyArray<Choice> => {
  const now = models.find(({ ref }) => isSame(ref, present)) ?? { ref: present }
  const all = [now, ...models.filter(({ ref }) => !isSame(ref, present))]
  const width = Math.max(...all.map(({ ref }) => Display.width(Display.oneLine(ref))))
  return all.map(({ note = "", ref }) => {
    const name = Display.oneLine(ref)
    const mark = signs.present[isSame(ref, present) ? 0 : 1]
    return { text: ref, label: `${mark}${name}${" ".repeat(width - Display.width(name))}  ${note}`.trimEnd() }
  })
}
