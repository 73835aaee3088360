/** `/model` without a name: the models there are, to pick one from; and what a name that is none may have meant. */
import * as Effect from "effect/Effect"
import type { DialogClosed, Service as Screen } from "../../channel/ConsoleScreen.js"
import * as Nearest from "../../core/Nearest.js"
import * as Display from "../../terminal/Display.js"
import type { Listed } from "../config/ModelList.js"

/** The models as rows, the present one marked. */
export const rows = (models: ReadonlyArray<Listed>, present: string, columns: number): ReadonlyArray<string> => {
  const all = withPresent(models, present)
  const width = Math.max(...all.map(({ ref }) => Display.width(Display.oneLine(ref))))
  return all.map(({ note, ref }, index) => {
    const name = Display.oneLine(ref)
    const number = `${String(index + 1).padStart(2)}. ${isSame(ref, present) ? "●" : " "} `
    const line = `${number}${name}${" ".repeat(width - Display.width(name))}  ${note ?? ""}`.trimEnd()
    return Display.width(line) <= columns ? line : Display.truncate(`${number}${name}`, columns)
  })
}

/** Asks until one is named by number or name; nothing when the person wants none. */
export const pick = (
  screen: Screen,
  models: ReadonlyArray<Listed>,
  present: string
): Effect.Effect<string | undefined> =>
  Effect.gen(function* () {
    const style = Display.style(screen.color)
    const all = withPresent(models, present)
    const lines = rows(models, present, (yield* screen.columns) - 4)
    const shown = lines.map((row, index) => (isSame(all[index]?.ref ?? "", present) ? style.bold(row) : row))
    const picking = screen.dialog("Which model?", (ask) => {
      const go = (more: ReadonlyArray<string>): Effect.Effect<string | undefined, DialogClosed> =>
        Effect.flatMap(
          ask({
            lines: [...shown, ...more, style.dim("a number, or PROVIDER/MODEL; nothing for the present one")],
            label: "model> ",
            keys: new Map(all.length > 9 ? [] : all.map((_, index) => [String(index + 1), []])),
            back: true,
            followUp: true,
            commands: false
          }),
          (line) => {
            const word = line.trim()
            if (word === "") return Effect.succeed(undefined)
            if (/^\d{1,3}$/.test(word)) {
              const chosen = all[Number(word) - 1]
              return chosen === undefined
                ? go([style.yellow(`Please name one of 1 to ${all.length}.`)])
                : Effect.succeed(chosen.ref)
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

const withPresent = (models: ReadonlyArray<Listed>, present: string): ReadonlyArray<Listed> =>
  models.some(({ ref }) => isSame(ref, present)) ? models : [{ ref: present }, ...models]
