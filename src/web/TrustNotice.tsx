/** What the files of a workspace would allow, for a person who decides whether they count. */
import { useEffect, useState } from "preact/hooks"
import type * as Api from "../http/Api.js"
import * as PageState from "./PageState.js"

/** Nothing, unless the workspace wants to be trusted. */
export const TrustNotice = ({ workspace }: { readonly workspace: string }) => {
  const client = PageState.client.value
  const [trust, setTrust] = useState<Api.WorkspaceTrust>()
  const [problem, setProblem] = useState("")
  useEffect(() => {
    let isHere = true
    setTrust(undefined)
    void client?.workspaces().then((answer) => {
      if (isHere && answer.isOk) setTrust(answer.value.workspaces.find((one) => one.workspace === workspace))
    })
    return () => void (isHere = false)
  }, [workspace, client])
  if (client === undefined || trust?.wantsTrust !== true) return null

  const give = async () => {
    const answer = await client.trust({ workspace, digest: trust.digest })
    const shown = answer.isOk ? answer.value : answer.failure.trust
    if (shown !== undefined) setTrust(shown)
    setProblem(answer.isOk ? "" : answer.failure.message)
    if (answer.isOk) PageState.say(`${workspace} is trusted. Sessions that begin now have what it allows.`)
  }
  return (
    <section class="padded" aria-label="Trust">
      <p class="warning">{workspace} brings files that would allow this without asking. It does not count yet.</p>
      <Lines lines={trust.allowances} />
      {trust.changes !== undefined && <p>Since they were trusted, this has changed:</p>}
      <Lines lines={trust.changes ?? []} />
      {problem !== "" && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      <div class="actions">
        <button type="button" onClick={() => void give()}>
          Trust these files
        </button>
      </div>
    </section>
  )
}

const Lines = ({ lines }: { readonly lines: ReadonlyArray<string> }) =>
  lines.length === 0 ? null : <pre tabIndex={0}>{lines.join("\n")}</pre>
