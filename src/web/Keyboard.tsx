/** Single keys of a view. They rest while somebody types, with a modifier, in a dialog, and when they are switched off. */
import { signal } from "@preact/signals"
import { useEffect, useRef } from "preact/hooks"

export type Keys = { readonly [key: string]: () => void }

/** Whether single keys do anything. Kept for this browser. */
const isOn = signal(true)
const isHelpOpen = signal(false)

export const begin = (): void => {
  isOn.value = localStorage.getItem(kept) !== "off"
}

/** The keys of a view, as long as it is there. */
export const useKeys = (keys: Keys): void => {
  const current = useRef(keys)
  current.current = keys
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return
      if (isHelpOpen.value) return
      if (event.key === "?") {
        isHelpOpen.value = true
        event.preventDefault()
        return
      }
      const isMove = ["j", "k", "ArrowDown", "ArrowUp"].includes(event.key)
      if (!isOn.value || (event.repeat && !isMove)) return
      const run = Object.hasOwn(current.current, event.key) ? current.current[event.key] : undefined
      if (run === undefined) return
      event.preventDefault()
      run()
    }
    addEventListener("keydown", press)
    return () => removeEventListener("keydown", press)
  }, [])
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
    <button type="button" class="plain small" onClick={() => (isHelpOpen.value = true)} aria-keyshortcuts="?">
      Keys
    </button>
  </div>
)

export const Help = () => {
  const element = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    if (isHelpOpen.value) element.current?.showModal()
  }, [isHelpOpen.value])
  if (!isHelpOpen.value) return null
  const close = () => (isHelpOpen.value = false)
  return (
    <dialog ref={element} onClose={close} aria-labelledby="help-title">
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
        <button type="button" class="yes" onClick={() => element.current?.close()}>
          Close
        </button>
      </div>
    </dialog>
  )
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const kept = "assent-keys"

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
