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
import * as Picker from "./Picker.js"
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
  let offers: Picker.Offers = () => undefined
  let picker: Picker.Picker | undefined
  /** Where the word begins whose list was closed, and where the word is for which there may be a list. */
  let closed: number | undefined
  let open: number | undefined

  const before = (): string => editor.text.slice(0, editor.cursor)
  /** The list for what was just typed. */
  const offer = (): void => {
    const found = offers(before())
    open = found?.from
    if (found?.from !== closed) closed = undefined
    picker = found === undefined || closed !== undefined ? undefined : Picker.make(found)
  }
  const noOffer = (): void => {
    picker = undefined
    open = undefined
  }
  /** Nothing for a key of the line's. */
  const pick = (current: Picker.Picker, input: UserInput): Outcome | undefined =>
    Picker.match(Picker.press(current, input, before()), {
      Moved: (next) => {
        picker = next.picker
        return Edited()
      },
      Taken: ({ choice }) => {
        editor = LineEditor.replaceBefore(editor, current.offer.from, choice.text)
        // A word that can go on has a list again.
        if (/\s$/.test(choice.text)) noOffer()
        else offer()
        return Edited()
      },
      GivenUp: () => {
        closed = current.offer.from
        noOffer()
        return Edited()
      },
      Unused: () => undefined
    })
  const edit = (input: UserInput): Outcome =>
    LineEditor.match(LineEditor.press(editor, input), {
      Edited: (next): Outcome => {
        editor = next.editor
        // Whoever moves, or recalls a line, wants no list.
        if (LineEditor.isTyped(input) || input.key.name === "backspace") offer()
        else noOffer()
        return Edited()
      },
      Submitted: ({ editor: next, shown, text }) => {
        editor = next
        noOffer()
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
      noOffer()
      editor = before
    },
    isSearching: () => search !== undefined,
    /** Whether escape closes something here. */
    takesEscape: () => search !== undefined || picker !== undefined,
    set: (text: string): void => {
      noOffer()
      editor = LineEditor.setText(editor, text)
    },
    paste: (text: string): void => {
      noOffer()
      editor = LineEditor.paste(editor, text)
    },
    /** Puts a text behind what is typed, on a line of its own. */
    add: (text: string): void => {
      if (text === "") return
      noOffer()
      const typed = LineEditor.whole(editor)
      editor = LineEditor.setText(editor, typed === "" ? text : `${typed}\n${text}`)
    },
    /** Gives up a search, or else what is typed. False where there was neither. */
    clear: (): boolean => {
      if (search === undefined && editor.text === "") return false
      if (search === undefined) editor = LineEditor.clear(editor)
      noOffer()
      search = undefined
      return true
    },
    /** Shows folded pastes in full. False where there is none. */
    unfold: (): boolean => {
      const before = editor
      editor = LineEditor.unfold(editor)
      return editor !== before
    },
    setCompletion: (next: (line: string) => ReadonlyArray<string>, nextOffers?: Picker.Offers): void => {
      complete = next
      offers = nextOffers ?? (() => undefined)
      const at = picker?.at
      if (open !== undefined) offer()
      // New choices do not take the mark away from somebody who moved it.
      if (picker !== undefined && at !== undefined)
        picker = { ...picker, at: Math.min(at, picker.offer.choices.length - 1) }
    },
    press: (input: UserInput): Outcome => {
      const { ctrl, meta, name } = input.key
      if (search !== undefined) return seek(search, input)
      const picked = picker === undefined ? undefined : pick(picker, input)
      if (picked !== undefined) return picked
      if (ctrl && name === "r") {
        search = HistorySearch.make(editor.history)
        noOffer()
        return Edited()
      }
      if (name !== "tab" || ctrl || meta) return edit(input)
      const completed = LineEditor.complete(editor, complete)
      editor = completed.editor
      return Choices({ choices: completed.choices })
    },
    /** Its rows below others, and the list below them. */
    below: (
      rows: ReadonlyArray<string>,
      prompt: string,
      style: Display.Style,
      size: { readonly columns: number; readonly rows: number }
    ): View => {
      const { columns } = size
      const found = search === undefined ? undefined : HistorySearch.found(search, editor.history)
      const label = search === undefined ? prompt : ScreenLayout.searchLabel(search.query, found !== undefined, columns)
      const shown = found === undefined ? editor : LineEditor.setText(editor, found)
      const view = ScreenLayout.withEditor(rows, shown, { prompt: style.bold(label), columns })
      return picker === undefined ? view : { ...view, rows: [...view.rows, ...Picker.rows(picker, style, size)] }
    }
  }
}
