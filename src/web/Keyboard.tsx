/**
 * Single keys of a view. They rest while somebody types, with a modifier, in a dialog, and when they are switched off.
 *
 * One listener hears every key from the start of the page. A view says what its keys do before it is painted, and the dialog
 * itself knows whether it is open: between two renders no key is lost, and none counts twice.
 */
import { signal } from "@preact/signals"
import { createRef } from "preact"
import { useLayoutEffect } from "preact/hooks"
import * as PageState from "./PageState.js"

type Actions = { readonly [key: string]: () => void }

export interface Keys {
  /** They may be held down, and never rest. */
  readonly moves: Actions
  /** They rest after the list has moved: a key that is meant for one card never answers the next one. */
  readonly answers: Actions
}

/** Whether single keys do anything. Kept for this browser. */
const isOn = signal(true)

/** The keys of the view that is in the page. */
let keys: Keys = { moves: {}, answers: {} }

/** When the reader could first see where the list is now; later while words arrive for a field that is gone. */
let movedAt = -Infinity

const dialog = createRef<HTMLDialogElement>()

export const begin = (): void => {
  isOn.value = localStorage.getItem(kept) !== "off"
  addEventListener("keydown", press)
}

/** The keys of a view, as long as it is there. */
export const useKeys = (ofView: Keys): void =>
  // Before the paint: the reader presses what the page shows.
  useLayoutEffect(() => {
    keys = ofView
    return () => {
      keys = { moves: {}, answers: {} }
    }
  })

/** Lets the keys that answer rest, from the moment at which the reader sees the change. */
export const rest = (): void => {
  movedAt = Infinity
  requestAnimationFrame(() => {
    movedAt = performance.now()
  })
}

export const Switch = () => (
  <div class="keys">
    <label class="choice">
      <input
        type="checkbox"
        checked={isOn.value}
        onChange={({ currentTarget }) => {
          isOn.value = currentTarget.checked
          localStorage.setItem(kept, currentTarget.checked ? "on" : "off")
        }}
      />
      <span>Single keys</span>
    </label>
    <button type="button" class="plain small" onClick={showHelp} aria-keyshortcuts="?">
      Keys
    </button>
  </div>
)

/** Always in the page, so that it opens with the key and not with a render after it. */
export const Help = () => (
  <dialog ref={dialog} aria-labelledby="help-title">
    <h2 id="help-title">Keys of the inbox</h2>
    <dl class="help">
      {help.map(([key, text]) => (
        <div key={key}>
          <dt>
            <kbd>{key}</kbd>
          </dt>
          <dd>{text}</dd>
        </div>
      ))}
    </dl>
    <p class="quiet">Keys that answer rest for 0.4 seconds after the list has moved, and while you type.</p>
    <div class="actions">
      <button type="button" class="yes" onClick={() => dialog.current?.close()}>
        Close
      </button>
    </div>
  </dialog>
)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const kept = "assent-keys"

/** In milliseconds. */
const dead = 400

const press = (event: KeyboardEvent): void => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return
  if (dialog.current?.open === true) return
  if (event.key === "?") {
    showHelp()
    event.preventDefault()
    return
  }
  if (!isOn.value) return
  const move = actionOf(keys.moves, event)
  if (move !== undefined) {
    event.preventDefault()
    return move()
  }
  // The time of the press, and not of this call: a page that was busy hears a key late.
  const isResting = event.timeStamp - movedAt < dead
  // Somebody who writes goes on for a while after the field is gone with its card.
  if (isResting) movedAt = Math.max(movedAt, event.timeStamp)
  const answer = event.repeat ? undefined : actionOf(keys.answers, event)
  if (answer === undefined) return
  event.preventDefault()
  if (isResting) PageState.say("The list has just moved. Press the key again.")
  else answer()
}

const actionOf = (actions: Actions, { key }: KeyboardEvent): (() => void) | undefined =>
  Object.hasOwn(actions, key) ? actions[key] : undefined

const showHelp = (): void => dialog.current?.showModal()

const help: ReadonlyArray<readonly [string, string]> = [
  ["j k", "the next and the previous question"],
  ["y", "allow it once"],
  ["n", "deny it once"],
  ["c", "deny it with words for the agent"],
  ["e", "edit the arguments, then allow"],
  ["a a", "allow it always in this session"],
  ["x", "mark it, to decide about several of one tool"],
  ["?", "this help"]
]

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable ||
    target instanceof HTMLTextAreaElement ||
    target instanceof HTMLSelectElement ||
    (target instanceof HTMLInputElement && target.type !== "checkbox" && target.type !== "radio"))
