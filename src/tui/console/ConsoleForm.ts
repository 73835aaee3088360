/**
 * A form of typed fields at a console: one field after the other, with the way back, and a last look at the whole before it
 * is sent. Where lines come from a pipe there is no last look, since nobody looks.
 *
 * | typed | means |
 * |---|---|
 * | nothing | what stands there already; where nothing does, an optional field is left out |
 * | `back` | the field before |
 * | `skip` | an optional field is left out |
 * | `cancel` | the whole form is withdrawn |
 *
 * In quotes each of these words is a text; where it is a choice of the field, it is that choice.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Field from "../../interaction/Field.js"
import * as FormProgress from "../../interaction/FormProgress.js"
import type { Elicit } from "../../interaction/Interaction.js"
import * as Display from "../terminal/Display.js"
import type * as Menu from "../terminal/Menu.js"
import type * as ConsoleScreen from "./ConsoleScreen.js"

/** How the form asks. */
export interface Asking<E> {
  /** Asks until the line is understood. */
  readonly insist: <A>(
    question: ConsoleScreen.Question,
    understand: (line: string) => Effect.Effect<Either.Either<A, string>, E>
  ) => Effect.Effect<A, E>
  /** How it ends when the person cancels. */
  readonly withdrawn: E
  readonly color: boolean
  readonly reviews: boolean
  /** Whether choices can be walked through, and do not stand among the lines. */
  readonly menus: boolean
  /** What stands above the first field. */
  readonly lines: ReadonlyArray<string>
}

/** Asks for all fields; yields their values. */
export const ask = <E>(asking: Asking<E>, { fields, problems = [] }: Elicit): Effect.Effect<Field.Values, E> =>
  Effect.gen(function* () {
    const total = fields.length
    const values = new Map<string, Field.Value>()
    const left = new Set<string>()
    let isFirst = true
    let [index, isReviewing] = [0, false]
    for (;;) {
      const field = fields[index]
      if (field === undefined) {
        if (!asking.reviews || total === 1) return Object.fromEntries(values)
        const said = yield* review(asking, fields, values)
        if (said === "send") return Object.fromEntries(values)
        isReviewing = true
        index = said
        continue
      }
      yield* FormProgress.tell({ number: index + 1, total })
      const said = yield* askFor(asking, now(field, values, left), {
        number: index + 1,
        total,
        problems: Field.problemsAt(problems, field),
        lines: isFirst ? asking.lines : [],
        followUp: !isFirst
      })
      isFirst = false
      if (said === "back") {
        index--
        isReviewing = false
        continue
      }
      const { value } = said
      if (value === undefined) {
        values.delete(field.name)
        left.add(field.name)
      } else {
        values.set(field.name, value)
        left.delete(field.name)
      }
      const answer = value === undefined ? ({ skipped: true } as const) : { value: Field.shown(field, value) }
      yield* FormProgress.tell({ number: index + 1, total, answer })
      index = isReviewing ? total : index + 1
    }
  })

/** One field as lines; `number` is 1-based. */
export const renderField = (
  field: Field.Field,
  number: number,
  total: number,
  {
    color,
    menus = false,
    problems = []
  }: { readonly color: boolean; readonly menus?: boolean; readonly problems?: ReadonlyArray<string> }
): ReadonlyArray<string> => {
  const style = Display.style(color)
  const { choices = [], labels = choices, required } = field
  const preset = field.default
  const isPreset = (choice: string | undefined) =>
    typeof preset === "object" ? preset.some((one) => one === choice) : preset !== undefined && preset === choice
  const isWalked = menus && choices.length > 0
  const keys = !isWalked ? "" : field.type === "choices" ? "arrows, space and Enter, or " : "arrows and Enter, or "
  const stands = preset === undefined ? "" : `; nothing for ${Display.oneLine(Field.shown(field, preset), 60)}`
  const empty = preset === undefined && !required ? "; nothing to leave it out" : stands
  return [
    style.bold(`Field ${number}/${total} [${required ? "required" : "optional"}]`),
    ...foreign(Field.titleOf(field)),
    ...(field.description === undefined ? [] : foreign(field.description)),
    ...problems.flatMap((problem) => foreign(problem).map((line) => style.yellow(line))),
    ...(isWalked ? [] : labels).map((label, index) => {
      const line = `${index + 1}. ${Display.oneLine(label)}`
      return isPreset(choices[index]) ? `${line} ${style.dim("(default)")}` : line
    }),
    style.dim(`${keys}type ${Field.expected(field)}${empty}`)
  ]
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** A value, which may well be the word `back`; or the way back. */
type Said = { readonly value: Field.Value | undefined } | "back"

/** What can be taken by arrows in a field. */
const menuOf = ({ choices, default: preset, labels = choices, type }: Field.Field): Menu.Menu | undefined => {
  if (labels === undefined || choices === undefined) return undefined
  const at = typeof preset === "string" ? choices.indexOf(preset) : -1
  return { labels, several: type === "choices", ...(at < 0 ? {} : { preset: at + 1 }) }
}

/** The field with what stands in it already. */
const now = (field: Field.Field, values: ReadonlyMap<string, Field.Value>, left: ReadonlySet<string>): Field.Field => {
  const { default: preset, ...bare } = field
  const value = values.get(field.name) ?? (left.has(field.name) ? undefined : preset)
  return value === undefined ? bare : { ...bare, default: value }
}

const askFor = <E>(
  asking: Asking<E>,
  field: Field.Field,
  at: {
    readonly number: number
    readonly total: number
    readonly problems: ReadonlyArray<string>
    readonly lines: ReadonlyArray<string>
    readonly followUp: boolean
  }
): Effect.Effect<Said, E> => {
  const style = Display.style(asking.color)
  const words = [...(at.number > 1 ? ["back"] : []), ...(field.required ? [] : ["skip"]), "cancel"].join(", ")
  return asking.insist<Said>(
    {
      lines: [
        ...at.lines,
        ...renderField(field, at.number, at.total, {
          color: asking.color,
          menus: asking.menus,
          problems: at.problems
        }),
        style.dim(words)
      ],
      label: "answer> ",
      paste: field.type === "string" ? "insert" : "draft",
      menu: asking.menus ? menuOf(field) : undefined,
      followUp: at.followUp
    },
    (line) => {
      const word = Field.isChoice(field, line) ? undefined : line.trim().toLowerCase()
      switch (word) {
        case "cancel":
          return Effect.fail(asking.withdrawn)
        case "back":
          return Effect.succeed(at.number === 1 ? Either.left("This is the first field.") : Either.right("back"))
        case "skip":
          return Effect.succeed(
            field.required ? Either.left("This field is required.") : Either.right({ value: undefined })
          )
        default:
          return Effect.succeed(Either.map(Field.parse(field, unquoted(line)), (value) => ({ value })))
      }
    }
  )
}

const unquoted = (line: string): string => /^\s*"(back|skip|cancel)"\s*$/i.exec(line)?.[1] ?? line

/** The last look: yields the field to go to, from 0, or that the form is sent. */
const review = <E>(
  asking: Asking<E>,
  fields: ReadonlyArray<Field.Field>,
  values: ReadonlyMap<string, Field.Value>
): Effect.Effect<number | "send", E> => {
  const style = Display.style(asking.color)
  const rows = fields.map((field, index) => {
    const value = values.get(field.name)
    const shown = value === undefined ? style.dim("(left out)") : Display.oneLine(Field.shown(field, value), 200)
    return `${index + 1}. ${Display.oneLine(Field.titleOf(field), 60)}: ${shown}`
  })
  const hint = `Enter sends, 1-${fields.length} changes one, back, cancel`
  return asking.insist<number | "send">(
    { lines: [style.bold("Is this right?"), ...rows, style.dim(hint)], label: "send> ", followUp: true },
    (line) => {
      const word = line.trim().toLowerCase()
      if (word === "cancel") return Effect.fail(asking.withdrawn)
      if (["", "y", "yes", "send"].includes(word)) return Effect.succeed(Either.right("send"))
      if (word === "back") return Effect.succeed(Either.right(fields.length - 1))
      return Effect.succeed(
        /^[1-9]\d*$/.test(word) && Number(word) <= fields.length
          ? Either.right(Number(word) - 1)
          : Either.left(`Please press Enter to send it, or type a number from 1 to ${fields.length}.`)
      )
    }
  )
}

const foreign = (text: string): ReadonlyArray<string> => Display.reveal(text).split("\n")
