/** What both pages draw: lines of text, and a form of JSON Schema. */

/** A list item for each message; all of it as text. */
export const draw = (lines) => {
  const items = lines.map((parts) => {
    const item = document.createElement("li")
    item.textContent = parts.join(" | ")
    return item
  })
  document.querySelector("ol").replaceChildren(...items)
}

const fieldOf = ([name, { title = name, type }]) => {
  const label = document.createElement("label")
  const input = document.createElement("input")
  input.type = type === "boolean" ? "checkbox" : type === "integer" || type === "number" ? "number" : "text"
  input.name = name
  label.append(title, input)
  return label
}

const valueOf = (input) =>
  input.type === "checkbox" ? input.checked : input.type === "number" ? Number(input.value) : input.value

/** Asks, and resolves to the filled form; to nothing when it is withdrawn. */
export const question = (message, { properties = {} } = {}) =>
  new Promise((resolve) => {
    const form = document.createElement("form")
    const legend = document.createElement("p")
    legend.textContent = message
    const simple = Object.entries(properties).filter(([, { type }]) => type !== "object")
    const send = document.createElement("button")
    send.textContent = "Send"
    form.append(legend, ...simple.map(fieldOf), send)
    form.addEventListener("submit", (event) => {
      event.preventDefault()
      const filled = [...form.querySelectorAll("input")].flatMap((input) =>
        input.type === "text" && input.value === "" ? [] : [[input.name, valueOf(input)]]
      )
      form.remove()
      resolve(Object.fromEntries(filled))
    })
    document.querySelector("section").append(form)
  })
