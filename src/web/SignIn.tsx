/** The page without a token that counts: it says where the token is, and takes one. */
import { useId, useRef } from "preact/hooks"
import * as PageState from "./PageState.js"

export const SignIn = () => {
  const element = useRef<HTMLInputElement>(null)
  const id = useId()
  const submit = (event: Event) => {
    event.preventDefault()
    const token = element.current?.value.trim() ?? ""
    if (token !== "") PageState.signIn(token.replace(/^.*#token=/, ""))
  }
  return (
    <main id="main" class="view sign-in">
      <h1>Assent</h1>
      <p>
        This page needs the token of its server. Open the address that <code>assent serve</code> has printed: it ends in{" "}
        <code>#token=…</code>
      </p>
      {PageState.refusal.value !== "" && <p class="warning">{PageState.refusal.value}</p>}
      <form class="form" onSubmit={submit}>
        <div class="field">
          <label for={id}>Token, or the whole address</label>
          <input id={id} ref={element} type="password" autocomplete="off" spellcheck={false} />
        </div>
        <div class="actions">
          <button type="submit" class="yes">
            Open
          </button>
        </div>
      </form>
      <p class="quiet">The token stays in this tab.</p>
    </main>
  )
}
