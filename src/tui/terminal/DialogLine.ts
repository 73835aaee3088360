/** What is being typed at a question: its editor, and the list or menu of one that has choices. A key changes the mark in place. */
import type { UserInput } from "@effect/platform/Terminal"
import * as Data from "effect/Data"
import * as ChoiceList from "./ChoiceList.js"
import * as LineEditor from "./LineEditor.js"
import * as Menu from "./Menu.js"
import * as Picker from "./Picker.js"
import * as ScreenLayout from "./ScreenLayout.js"

/** The effect of a key. */
export type Outcome = Data.TaggedEnum<{
  /** Also where only the mark has moved. */
  readonly Edited: { readonly editor: LineEditor.LineEditor }
  readonly Picked: { readonly text: string; readonly shown: string }
  /** `shown` is the text as it stood on the screen. */
  readonly Submitted: { readonly text: string; readonly shown: string }
  readonly Unused: {}
}>
export const { Edited, Picked, Submitted, Unused, $match: match } = Data.taggedEnum<Outcome>()

/** A line end is an answer where no text of several lines is wanted. */
export const keyOf = ({ hidden, paste }: ScreenLayout.Question, input: UserInput): UserInput =>
  input.key.name === "enter" && (paste !== "insert" || hidden === true)
    ? { ...input, key: { ...input.key, name: "return" } }
    : input

export const takesCommands = ({ commands, paste }: ScreenLayout.Question): boolean => commands ?? paste !== "insert"

/** The effect of one key. */
export const press = (current: ScreenLayout.Open, input: UserInput): Outcome => {
  if (current.replaces && LineEditor.isTyped(input)) clear(current)
  current.replaces = false
  const listing = ScreenLayout.listingOf(current)
  const picked = listing === undefined ? Picker.Unused() : ChoiceList.press(listing, input)
  if (picked._tag === "Taken") return Picked({ text: picked.choice.text, shown: picked.choice.text })
  if (picked._tag === "Moved") {
    current.at = picked.picker.at
    return Edited({ editor: current.editor })
  }
  const { menu } = current.question
  const taken = menu === undefined ? Menu.Unused() : Menu.press(menu, current.marks, current.editor.text, input)
  if (taken._tag === "Taken") return Picked(taken)
  if (taken._tag === "Moved") {
    current.marks = taken.marks
    return Edited({ editor: current.editor })
  }
  return LineEditor.match(LineEditor.press(current.editor, input), {
    Edited: ({ editor }): Outcome => {
      if (editor.text !== current.editor.text) current.at = 0
      return Edited({ editor })
    },
    Submitted: ({ shown, text }) => Submitted({ shown, text }),
    Unused: () => Unused()
  })
}

/** Takes back what was typed, which ctrl-y puts back, or else what was marked. False where neither was. */
export const clear = (current: ScreenLayout.Open): boolean => {
  const { initial = "", menu } = current.question
  if (current.editor.text === initial) {
    if (menu === undefined || Menu.isUntouched(menu, current.marks)) return false
    current.marks = Menu.marks(menu)
    return true
  }
  const { cut, folds } = LineEditor.clear(current.editor)
  current.editor = { ...LineEditor.make(current.question.initial), cut, folds }
  current.at = 0
  return true
}

/** Shows folded pastes in full. False where there are none. */
export const unfold = (current: ScreenLayout.Open): boolean => {
  const before = current.editor
  return (current.editor = LineEditor.unfold(before)) !== before
}

/** The words that stay of what was typed at a question that is gone. A secret, and what was there to be edited, are none. */
export const left = ({ editor, question: { hidden, initial = "" } }: ScreenLayout.Open): string =>
  hidden === true || initial !== "" ? "" : LineEditor.whole(editor)
