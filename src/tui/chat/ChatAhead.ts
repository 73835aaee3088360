/** What the first answer of a chat needs, loaded while the person thinks of words. */
import * as Effect from "effect/Effect"
import { MessageId } from "../../core/Id.js"

/** In small steps, between which keys are served. */
export const load: Effect.Effect<void> = Effect.suspend(() =>
  Effect.forEach(ahead, (step) => Effect.delay(Effect.promise(step), "30 millis"), { discard: true })
)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** In letters of one byte for V8, and of two: it makes code of an expression for each. */
const words = ["a", "–"].flatMap((letter) => [
  `# ${letter}\n`,
  `A *b* **c** \`d\` [e](f) <g>, h_i_. ${letter}\n`,
  `- j ${letter}\n  1. k\n`,
  `> l ${letter}\n`,
  `| m | n ${letter} |\n|---|---|\n| o | p |\n`
])
const code = ["ts", "sh", "json", "py"].map(
  (language) => `\`\`\`${language}\n# a\nconst b = (c: number): string => "d"\n\`\`\`\n`
)

const entries = () => import("../../journal/JournalEntry.js")

/**
 * It takes Node as long to load as all of a prompt. The name of a class is enough to have Node load all that it fetches
 * with, and less is left to it when parts of that are there already.
 */
const ahead: ReadonlyArray<() => Promise<unknown>> = [
  async () => globalThis.ReadableStream,
  async () => process.getBuiltinModule("node:tls"),
  async () => process.getBuiltinModule("node:http"),
  async () => process.getBuiltinModule("node:http2"),
  async () => globalThis.Headers,
  async () => (await fetch("data:,")).text(),
  ...Array.from({ length: 10 }, () => async () => (await import("../terminal/CodeColors.js")).learn()),
  // The first entry of a journal has the schemas of all of them made.
  async () => (await entries()).Received.ast,
  async () => (await entries()).SessionOpened.ast,
  async () => (await entries()).JournalEntry.ast,
  async () => (await entries()).encode({ _tag: "TaskTold", messageId: MessageId.make("msg_none") }),
  () => import("../terminal/MarkdownStream.js"),
  () => import("../view/AgentText.js"),
  () => import("../view/Printed.js"),
  // V8 makes code of an expression when it is used for the second time, and the parser has long ones.
  ...[...words, ...words, ...code].map(
    (text) => async () => (await import("../view/AgentText.js")).rowsOf(text, 80, true)
  )
]
