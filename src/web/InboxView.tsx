/**
 * The open requests of all sessions and subagents in one list, by session and agent, oldest first, and the keys that answer
 * them.
 */
import { computed, signal } from "@preact/signals"
import { useLayoutEffect, useRef } from "preact/hooks"
import * as Keyboard from "./Keyboard.js"
import * as PageState from "./PageState.js"
import { RequestCard, perform, toolOf, type Command } from "./RequestCard.js"
import { VirtualList } from "./VirtualList.js"

/** Those of one agent together, in the order of their oldest question. */
const rows = computed((): ReadonlyArray<PageState.Asked> => {
  const groups = new Map<string, Array<PageState.Asked>>()
  for (const asked of PageState.requests.value) {
    const key = `${asked.sessionId} ${asked.request.agentPath}`
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [asked])
    else group.push(asked)
  }
  return [...groups.values()].flat()
})

/** The id of the card in focus, and those that are marked. */
const focused = signal<string | undefined>(undefined)
const marked = signal<ReadonlySet<string>>(new Set())

const keyOf = ({ request }: PageState.Asked): string => request.requestId

export const InboxView = () => {
  const list = rows.value
  const ended = PageState.settled.value
  const before = useRef("")

  const openOf = (from: number): string | undefined =>
    (list.slice(from).find((asked) => !ended.has(keyOf(asked))) ?? list.find((asked) => !ended.has(keyOf(asked))))
      ?.request.requestId
  const at = list.findIndex((asked) => keyOf(asked) === focused.value)

  // The focus leaves a card that has ended, and one that is gone.
  const lastAt = useRef(0)
  if (at >= 0) lastAt.current = at
  const isGone = at < 0 || (focused.value !== undefined && ended.has(focused.value))
  const wanted = isGone ? openOf(Math.max(0, lastAt.current)) : focused.value
  useLayoutEffect(() => {
    if (isGone && focused.value !== wanted) focused.value = wanted
  }, [isGone, wanted])

  // What stands at the place of the focus: when that changes by itself, the list has moved.
  const stand = `${wanted ?? ""} ${list.findIndex((asked) => keyOf(asked) === wanted)}`
  // In the render: the next card takes the focus in the same commit, as if the reader had moved there.
  if (stand !== before.current) {
    before.current = stand
    if (wanted !== undefined) Keyboard.rest()
  }

  const move = (by: number) => {
    const next = list[Math.min(list.length - 1, Math.max(0, (at < 0 ? 0 : at) + by))]
    if (next === undefined) return
    focused.value = keyOf(next)
    // The reader moved, and not the list.
    before.current = `${keyOf(next)} ${list.indexOf(next)}`
    document.querySelector<HTMLElement>(`[data-request="${CSS.escape(keyOf(next))}"]`)?.focus({ preventScroll: true })
  }
  const current = list[at]

  const mark = (asked: PageState.Asked) => {
    const tool = toolOf(asked)
    const others = list.filter((one) => marked.value.has(keyOf(one)))
    if (tool === undefined) return PageState.say("Only approvals can be marked.")
    if (others.some((one) => toolOf(one) !== tool)) {
      return PageState.say(
        `Marked cards are of one tool: ${toolOf(others[0] ?? asked) ?? ""}. Clear the marks first.`,
        true
      )
    }
    const next = new Set(marked.value)
    if (!next.delete(keyOf(asked))) next.add(keyOf(asked))
    marked.value = next
    return undefined
  }

  Keyboard.useKeys({
    moves: { j: () => move(1), ArrowDown: () => move(1), k: () => move(-1), ArrowUp: () => move(-1) },
    answers:
      current === undefined || ended.has(keyOf(current))
        ? {}
        : {
            x: () => void mark(current),
            ...Object.fromEntries(
              Object.entries(commands).map(([key, name]) => [
                key,
                () => {
                  perform(keyOf(current), name)
                  // The keys that follow are words.
                  if (name === "comment" || name === "edit") Keyboard.rest()
                }
              ])
            )
          }
  })

  const chosen = list.filter((asked) => marked.value.has(keyOf(asked)) && !ended.has(keyOf(asked)))
  const decide = async (answer: "yes" | "no") => {
    const all = chosen
    marked.value = new Set()
    for (const asked of all) {
      // One after the other: each has its own record.
      await PageState.answer(keyOf(asked), { answer }, answer === "yes" ? "Allowed" : "Denied")
    }
    PageState.say(`${all.length} calls: ${answer === "yes" ? "allowed" : "denied"} one by one.`)
  }

  return (
    <main id="main" class="view inbox">
      <header class="bar">
        <h2>Inbox</h2>
        <p class="quiet" data-count={PageState.open.value.length}>
          {countOf(PageState.open.value.length)}
        </p>
        <Keyboard.Switch />
      </header>
      {list.length === 0 ? (
        <div class="empty">
          {PageState.isRead.value ? (
            <>
              <p class="large">Nothing waits for you.</p>
              <p class="quiet">Questions of all sessions appear here by themselves.</p>
            </>
          ) : (
            <p class="quiet">Reading…</p>
          )}
        </div>
      ) : (
        <VirtualList
          rows={list}
          keyOf={keyOf}
          guess={260}
          label="Open questions"
          focus={wanted}
          draw={(asked) => (
            <RequestCard
              asked={asked}
              isFocused={keyOf(asked) === wanted}
              isMarked={marked.value.has(keyOf(asked))}
              focus={() => {
                if (focused.value === keyOf(asked) || ended.has(keyOf(asked))) return
                focused.value = keyOf(asked)
                before.current = `${keyOf(asked)} ${list.indexOf(asked)}`
              }}
              mark={toolOf(asked) === undefined ? undefined : () => mark(asked)}
            />
          )}
        />
      )}
      {chosen.length > 0 && (
        <div class="batch" role="region" aria-label="Marked questions">
          <p>
            {chosen.length} marked: <code>{chosen.map(toolOf)[0]}</code>
          </p>
          <button type="button" class="plain" onClick={() => (marked.value = new Set())}>
            Clear
          </button>
          <button type="button" class="plain" onClick={() => void decide("no")}>
            Deny each
          </button>
          <button type="button" class="yes" onClick={() => void decide("yes")}>
            Allow each
          </button>
        </div>
      )}
    </main>
  )
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const commands: { readonly [key: string]: Command } = { y: "allow", n: "deny", c: "comment", e: "edit", a: "always" }

const countOf = (count: number): string =>
  count === 0 ? "" : count === 1 ? "1 question is open" : `${count} questions are open`
