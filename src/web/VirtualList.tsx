/**
 * A long list of rows of any height, of which only those near the window are in the page. Heights are measured once a row was
 * there, and guessed before.
 */
import type { ComponentChildren } from "preact"
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks"

export interface Props<A> {
  readonly rows: ReadonlyArray<A>
  readonly keyOf: (row: A) => string
  readonly guess: number
  readonly draw: (row: A, index: number) => ComponentChildren
  readonly label: string
  /** A row that has to be in the page, and in sight whenever this changes. */
  readonly focus?: string | undefined
  /** Whether the list stays at its end while rows come, as long as its reader is there. */
  readonly isTail?: boolean
  /** The element that scrolls. Default: the window. */
  readonly class?: string
  readonly role?: "list" | "log"
}

export const VirtualList = <A,>(props: Props<A>) => {
  const { draw, focus, guess, isTail = false, keyOf, label, role = "list", rows } = props
  const scroller = useRef<HTMLDivElement>(null)
  const heights = useRef(new Map<string, number>())
  /** Where the list ended when it was last drawn. */
  const lastEnd = useRef(0)
  const [view, setView] = useState({ top: 0, height: 800 })
  const [, remeasured] = useState(0)

  // The rows may be an array that grows in its place.
  const keys = rows.map(keyOf)
  const tops = new Float64Array(rows.length + 1)
  for (let at = 0; at < rows.length; at++) {
    tops[at + 1] = (tops[at] ?? 0) + (heights.current.get(keys[at] ?? "") ?? guess)
  }
  const total = tops[rows.length] ?? 0
  const first = Math.max(0, indexAt(tops, view.top - overscan))
  const last = Math.min(rows.length - 1, indexAt(tops, view.top + view.height + overscan))

  const observer = useMemo(
    () =>
      new ResizeObserver((entries) => {
        let isChanged = false
        for (const { borderBoxSize, target } of entries) {
          const key = target.getAttribute("data-key")
          const height = borderBoxSize[0]?.blockSize ?? 0
          if (key === null || height === 0 || heights.current.get(key) === height) continue
          heights.current.set(key, height)
          isChanged = true
        }
        if (isChanged) remeasured((count) => count + 1)
      }),
    []
  )
  useEffect(() => () => observer.disconnect(), [observer])

  useLayoutEffect(() => {
    const element = scroller.current
    if (element === null) return undefined
    const look = () => {
      setView((before) =>
        before.top === element.scrollTop && before.height === element.clientHeight
          ? before
          : { top: element.scrollTop, height: element.clientHeight }
      )
    }
    element.addEventListener("scroll", look, { passive: true })
    const sized = new ResizeObserver(look)
    sized.observe(element)
    look()
    return () => {
      element.removeEventListener("scroll", look)
      sized.disconnect()
    }
  }, [])

  useLayoutEffect(() => {
    const element = scroller.current
    if (element === null || !isTail) return
    const isAtEnd = lastEnd.current - element.scrollTop - element.clientHeight < 40
    lastEnd.current = element.scrollHeight
    if (isAtEnd) element.scrollTop = element.scrollHeight
  })

  useLayoutEffect(() => {
    const element = scroller.current
    const at = focus === undefined ? -1 : keys.indexOf(focus)
    if (element === null || at < 0) return
    const top = tops[at] ?? 0
    const bottom = tops[at + 1] ?? 0
    if (top < element.scrollTop + 8) element.scrollTop = top - 8
    else if (bottom > element.scrollTop + element.clientHeight)
      element.scrollTop = Math.min(top - 8, bottom - element.clientHeight + 16)
    // When the list changes below a reader, it does not jump to the focus.
  }, [focus])

  const drawn: Array<number> = []
  for (let at = first; at <= last; at++) drawn.push(at)
  const focused = focus === undefined ? -1 : keys.indexOf(focus)
  if (focused > last) drawn.push(focused)
  else if (focused >= 0 && focused < first) drawn.unshift(focused)

  return (
    <div class={`virtual ${props.class ?? ""}`} ref={scroller} tabIndex={-1}>
      <div role={role} aria-label={label} style={{ height: `${total}px`, position: "relative" }}>
        {drawn.map((at) => {
          const row = rows[at]
          const key = keys[at] ?? ""
          return row === undefined ? undefined : (
            <Measured
              key={key}
              id={key}
              top={tops[at] ?? 0}
              observer={observer}
              index={at}
              count={rows.length}
              role={role}
            >
              {draw(row, at)}
            </Measured>
          )
        })}
      </div>
    </div>
  )
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Pixels beyond the window. */
const overscan = 600

const Measured = (props: {
  readonly id: string
  readonly top: number
  readonly index: number
  readonly count: number
  readonly role: "list" | "log"
  readonly observer: ResizeObserver
  readonly children: ComponentChildren
}) => {
  const { children, count, id, index, observer, role, top } = props
  const element = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => {
    const { current } = element
    if (current === null) return undefined
    observer.observe(current)
    return () => observer.unobserve(current)
  }, [observer])
  const place = role === "list" ? { role: "listitem" as const, "aria-posinset": index + 1, "aria-setsize": count } : {}
  return (
    <div ref={element} data-key={id} class="row" style={{ transform: `translateY(${top}px)` }} {...place}>
      {children}
    </div>
  )
}

/** The row at a height, by halving. */
const indexAt = (tops: Float64Array, height: number): number => {
  let low = 0
  let high = tops.length - 1
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if ((tops[middle] ?? 0) <= height) low = middle
    else high = middle - 1
  }
  return low
}
