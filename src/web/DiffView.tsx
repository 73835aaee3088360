/** Changes as rows: a unified diff as the server sends it, or two texts beside an editor. */
import { diffLines } from "diff/lib/diff/line.js"
import { useMemo } from "preact/hooks"

interface Row {
  readonly sign: " " | "+" | "-" | "@"
  readonly text: string
  readonly before: number | undefined
  readonly after: number | undefined
}

/** A unified diff. */
export const DiffView = ({ text }: { readonly text: string }) => {
  const rows = useMemo(() => rowsOf(text), [text])
  return <Rows rows={rows} />
}

/** What differs between two texts, with three lines around it. */
export const TextDiff = ({ after, before }: { readonly before: string; readonly after: string }) => {
  const rows = useMemo(() => rowsBetween(before, after), [before, after])
  return before === after ? <p class="quiet">No change yet.</p> : <Rows rows={rows} />
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Rows that are drawn; a person who needs more looks at the file. */
const most = 600

const Rows = ({ rows }: { readonly rows: ReadonlyArray<Row> }) => {
  const added = rows.filter(({ sign }) => sign === "+").length
  const removed = rows.filter(({ sign }) => sign === "-").length
  return (
    <div class="diff" tabIndex={0} role="region" aria-label={`Changes: ${added} lines added, ${removed} removed`}>
      <table role="presentation">
        <tbody>
          {rows.slice(0, most).map(({ after, before, sign, text }, at) => (
            <tr key={at} class={names[sign]}>
              <td class="number">{before}</td>
              <td class="number">{after}</td>
              <td class="sign">{sign === "@" ? "" : sign}</td>
              <td class="line">{text}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > most && <p class="quiet">… and {rows.length - most} more rows.</p>}
    </div>
  )
}

const names = { " ": "same", "+": "added", "-": "removed", "@": "place" } as const

const rowsOf = (text: string): ReadonlyArray<Row> => {
  const rows: Array<Row> = []
  let before = 0
  let after = 0
  let isInside = false
  for (const line of text.replace(/\n$/, "").split("\n")) {
    const [, from, to] = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(line) ?? []
    if (from !== undefined && to !== undefined) {
      before = Number(from)
      after = Number(to)
      isInside = true
      if (rows.length > 0) rows.push({ sign: "@", text: "⋯", before: undefined, after: undefined })
      continue
    }
    // Names of the files, which the card has above.
    if (!isInside) continue
    const rest = line.slice(1)
    if (line.startsWith("+")) rows.push({ sign: "+", text: rest, before: undefined, after: after++ })
    else if (line.startsWith("-")) rows.push({ sign: "-", text: rest, before: before++, after: undefined })
    else if (line.startsWith("\\")) rows.push({ sign: "@", text: rest.trim(), before: undefined, after: undefined })
    else rows.push({ sign: " ", text: rest, before: before++, after: after++ })
  }
  return isInside
    ? rows
    : text.split("\n").map((line, at) => ({ sign: " ", text: line, before: undefined, after: at + 1 }))
}

const around = 3

const rowsBetween = (before: string, after: string): ReadonlyArray<Row> => {
  const all: Array<Row> = []
  let left = 1
  let right = 1
  for (const { added, removed, value } of diffLines(before, after)) {
    for (const text of value.replace(/\n$/, "").split("\n")) {
      if (added) all.push({ sign: "+", text, before: undefined, after: right++ })
      else if (removed) all.push({ sign: "-", text, before: left++, after: undefined })
      else all.push({ sign: " ", text, before: left++, after: right++ })
    }
  }
  const near = (at: number) => all.slice(Math.max(0, at - around), at + around + 1).some(({ sign }) => sign !== " ")
  const rows: Array<Row> = []
  let isGap = false
  all.forEach((row, at) => {
    if (near(at)) {
      if (isGap && rows.length > 0) rows.push({ sign: "@", text: "⋯", before: undefined, after: undefined })
      isGap = false
      rows.push(row)
    } else isGap = true
  })
  return rows
}
