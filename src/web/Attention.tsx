/** How the page calls: the count in its title and icon, words for readers of the screen, and notes of the system. */
import { effect, signal } from "@preact/signals"
import * as PageState from "./PageState.js"

/** Whether the system shows notes of this page. */
const permission = signal<NotificationPermission | "absent">("absent")

/** Starts to watch the open requests. */
export const begin = (): void => {
  if ("Notification" in window) permission.value = Notification.permission
  let known: ReadonlySet<string> | undefined
  effect(() => {
    const open = PageState.open.value
    const count = open.length
    document.title = count === 0 ? "Assent" : `(${count}) Assent`
    drawIcon(count)
    if (!PageState.isRead.value) return
    const before = known
    known = new Set(open.map(({ request }) => request.requestId))
    if (before === undefined) return
    const arrived = open.filter(({ request }) => !before.has(request.requestId))
    const [first] = arrived
    if (first === undefined) return
    const words = arrived.length === 1 ? `New question of ${wordsOf(first)}` : `${arrived.length} new questions`
    PageState.say(words)
    if (document.hidden && permission.value === "granted") {
      // Without arguments: it may stand on a locked screen.
      const note = new Notification("Assent asks", { body: words, tag: "assent" })
      note.addEventListener("click", () => {
        window.focus()
        PageState.go("")
      })
    }
  })
}

/** Asks for notes, if nobody decided about them yet. */
export const NotifyButton = () =>
  permission.value === "default" ? (
    <button
      type="button"
      class="plain small"
      onClick={() => void Notification.requestPermission().then((given) => (permission.value = given))}
    >
      Notify me
    </button>
  ) : null

/** What was said last: politely, or at once. */
export const Announcer = () => {
  const { count, isUrgent, text } = PageState.said.value
  return (
    <>
      <div class="unseen" aria-live="polite">
        <span key={count}>{isUrgent ? "" : text}</span>
      </div>
      <div class="unseen" aria-live="assertive">
        <span key={count}>{isUrgent ? text : ""}</span>
      </div>
      <div class={`toast ${isUrgent ? "urgent" : ""}`} key={count} hidden={text === ""} aria-hidden="true">
        {text}
      </div>
    </>
  )
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const wordsOf = ({ request: { agentPath, interaction } }: PageState.Asked): string =>
  `${agentPath}: ${interaction._tag === "Approve" ? interaction.tool : interaction._tag}`

let drawn = -1

const drawIcon = (count: number): void => {
  if (count === drawn) return
  drawn = count
  const link = document.querySelector<HTMLLinkElement>('link[rel="icon"]')
  if (link === null) return
  if (count === 0) {
    link.href = "/icon.svg"
    return
  }
  const canvas = document.createElement("canvas")
  canvas.width = canvas.height = 64
  const context = canvas.getContext("2d")
  if (context === null) return
  context.fillStyle = "#b4452c"
  context.beginPath()
  context.arc(32, 32, 32, 0, 2 * Math.PI)
  context.fill()
  context.fillStyle = "#fff"
  context.font = "bold 38px system-ui, sans-serif"
  context.textAlign = "center"
  context.textBaseline = "middle"
  context.fillText(count > 99 ? "99" : String(count), 32, 35)
  link.href = canvas.toDataURL()
}
