/**
 * What is being typed at the prompt: an editor, the search through what was submitted before, and completion. Mutable;
 * every function is one step.
 */
import type { UserInput } from "@effect/platform/Terminal"
import * as Data from "effect/Data"
import * as Display from "./Display.js"
import * as HistorySearch from "./HistorySearch.js"
import * as LineEditor from "./LineEditor.js"
import type { View } from "./LiveRegion.js"
import * as ScreenLayout from "./ScreenLayout.js"

export interface PromptLine extends ReturnType<typeof make> {}

/** The effect of a key. */
export type Outcome = Data.TaggedEnum<{
  readonly Edited: {}
  /** `shown` is the text as it stood on the screen. */
  readonly Submitted: { readonly text: string; readonly shown: string }
  /** The text can go on in these ways. */
  readonly Choices: { readonly choices: ReadonlyArray<string> }
}>
export const { Edited, Submitted, Choices, $match: match } = Data.taggedEnum<Outcome>()

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** An empty one, with what was submitted before, oldest first. */
export const make = (history?: ReadonlyArray<string>) => {
  let editor = LineEditor.make("", history)
  let search: HistorySearch.HistorySearch | undefined
  let complete: (line: string) => ReadonlyArray<string> = () => []

  const edit = (input: UserInput): Outcome =>
    LineEditor.match(LineEditor.press(editor, input), {
      Edited: (next): Outcome => {
        editor = next.editor
        return Edited()
      },
      Submitted: ({ editor: next, shown, text }) => {
        editor = next
        return Submitted({ shown, text })
      },
      Unused: () => Edited()
    })
  const seek = (current: HistorySearch.HistorySearch, input: UserInput): Outcome =>
    HistorySearch.match(HistorySearch.press(current, input, editor.history), {
      Searching: (next): Outcome => {
        search = next.search
        return Edited()
      },
      Taken: ({ isOver }) => {
        const text = HistorySearch.found(current, editor.history)
        search = undefined
        if (text !== undefined) editor = LineEditor.setText(editor, text)
        return isOver ? Edited() : edit(input)
      },
      GivenUp: () => {
        search = undefined
        return Edited()
      }
    })

  return {
    /** All that is typed. */
    text: () => LineEditor.whole(editor),
    /** The same, with a word for each long paste. */
    shown: () => LineEditor.shown(editor),
    isEmpty: () => editor.text === "",
    /** As it is now, to be restored. */
    editor: () => editor,
    restore: (before: LineEditor.LineEditor): void => {
      editor = before
    },
    isSearching: () => search !== undefined,
    set: (text: string): void => {
      editor = LineEditor.setText(editor, text)
    },
    paste: (text: string): void => {
      editor = LineEditor.paste(editor, text)
    },
    /** Puts a text behind what is typed, on a line of its own. */
    add: (text: string): void => {
      const before = LineEditor.whole(editor)
      editor = LineEditor.setText(editor, before === "" ? text : `${before}\n${text}`)
    },
    /** Gives up a search, or else what is typed. False where there was neither. */
    clear: (): boolean => {
      if (search === undefined && editor.text === "") return false
      if (search === undefined) editor = LineEditor.clear(editor)
      search = undefined
      return true
    },
    /** Shows folded pastes in full. False where there is none. */
    unfold: (): boolean => {
      const before = editor
      editor = LineEditor.unfold(editor)
      return editor !== before
    },
    setCompletion: (next: (line: string) => ReadonlyArray<string>): void => {
      complete = next
    },
    press: (input: UserInput): Outcome => {
      const { ctrl, meta, name } = input.key
      if (search !== undefined) return seek(search, input)
      if (ctrl && name === "r") {
        search = HistorySearch.make(editor.history)
        return Edited()
      }
      if (name !== "tab" || ctrl || meta) return edit(input)
      const completed = LineEditor.complete(editor, complete)
      editor = completed.editor
      return Choices({ choices: completed.choices })
    },
    /** Its rows below others. */
    below: (rows: ReadonlyArray<string>, prompt: string, style: Display.Style, columns: number): View => {
      const found = search === undefined ? undefined : HistorySearch.found(search, editor.history)
      const label = search === undefined ? prompt : ScreenLayout.searchLabel(search.query, found !== undefined, columns)
      const shown = found === undefined ? editor : LineEditor.setText(editor, found)
      return ScreenLayout.withEditor(rows, shown, { prompt: style.bold(label), columns })
    }
  }
}
