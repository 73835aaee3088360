/** The rules of a session, and how they would decide a call. */
import { useEffect, useId, useState } from "preact/hooks"
import * as PageState from "./PageState.js"

export const PolicyView = ({ id }: { readonly id: string }) => {
  const [rules, setRules] = useState<ReadonlyArray<string>>()
  const [verdict, setVerdict] = useState<ReadonlyArray<string>>([])
  const [call, setCall] = useState("")
  const [rule, setRule] = useState("")
  const field = useId()
  const client = PageState.client.value

  const run = async (command: string): Promise<ReadonlyArray<string>> => {
    const answer = await client?.permissions(id, command)
    if (answer === undefined) return []
    return answer.isOk ? answer.value.lines : [answer.failure.message]
  }
  const read = () => void run("show").then(setRules)
  useEffect(read, [id, client])

  const check = (event: Event) => {
    event.preventDefault()
    void Promise.all([run(`check ${call}`), run(`why ${call}`)]).then((both) => setVerdict([...new Set(both.flat())]))
  }
  const change = (verb: "allow" | "deny" | "remove") => {
    if (rule.trim() === "") return
    void run(`${verb} ${rule.trim()}`).then((lines) => {
      PageState.say(lines.join(" "))
      setRule("")
      read()
    })
  }

  return (
    <div class="policy scrolls" tabIndex={0} role="region" aria-label="Policy">
      <form class="form" onSubmit={check}>
        <h3>How would Assent decide a call?</h3>
        <div class="field">
          <label for={`${field}-c`}>A tool and its arguments</label>
          <input
            id={`${field}-c`}
            value={call}
            placeholder="run_command git push"
            spellcheck={false}
            onInput={({ currentTarget }) => setCall(currentTarget.value)}
          />
        </div>
        <div class="actions start">
          <button type="submit" class="plain" disabled={call.trim() === ""}>
            Check
          </button>
        </div>
        <div role="status">
          {verdict.map((line) => (
            <p key={line} class="verdict-line">
              {line}
            </p>
          ))}
        </div>
      </form>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault()
          change("allow")
        }}
      >
        <h3>A rule for this session</h3>
        <div class="field">
          <label for={`${field}-r`}>A tool, a pattern or a command</label>
          <input
            id={`${field}-r`}
            value={rule}
            placeholder="git status"
            spellcheck={false}
            onInput={({ currentTarget }) => setRule(currentTarget.value)}
          />
        </div>
        <div class="actions start">
          <button type="button" class="plain" onClick={() => change("deny")}>
            Deny
          </button>
          <button type="button" class="plain" onClick={() => change("remove")}>
            Remove
          </button>
          <button type="submit" class="plain">
            Allow
          </button>
        </div>
      </form>
      <section>
        <h3>Rules in force</h3>
        <pre class="rules" tabIndex={0}>
          {rules === undefined ? "Reading…" : rules.join("\n")}
        </pre>
      </section>
    </div>
  )
}
