/**
 * How a tool server is reached, as settings and programs write it.
 *
 * ```json
 * { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-everything"] }
 * { "url": "https://mcp.example.com/mcp", "headers": { "Authorization": "Bearer ${TOKEN}" } }
 * ```
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import * as Lazy from "../core/Lazy.js"

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

const Texts = Schema.Record({ key: Schema.NonEmptyString, value: Schema.String })

/**
 * A name in the names of tools: `mcp__NAME__TOOL`.
 *
 * @since 0.1.0
 * @category schemas
 */
export const ServerName = Schema.String.pipe(
  Schema.filter(
    (name) =>
      isName(name) ||
      `a server's name has 1 to 32 letters, digits, "-" and single "_", and begins with a letter or digit`
  )
)

const Fields = {
  /** A program that speaks the protocol on its standard input and output. */
  command: optional(Schema.NonEmptyTrimmedString),
  args: optional(Schema.Array(Schema.String)),
  /** Variables beside the usual ones. `${NAME}` is a variable of this process. */
  env: optional(Texts),
  /** A server behind streamable HTTP. */
  url: optional(Schema.NonEmptyTrimmedString),
  /** `${NAME}` is a variable of this process. */
  headers: optional(Texts),
  /** How Assent signs in by OAuth, if the server wants more than the usual way. */
  auth: optional(
    Schema.Struct({
      /** A client that you registered there. Default: Assent registers itself. */
      client_id: optional(Schema.NonEmptyTrimmedString),
      /** `${NAME}` is a variable of this process. */
      client_secret: optional(Schema.NonEmptyString),
      scope: optional(Schema.NonEmptyTrimmedString),
      /** The browser returns to `http://127.0.0.1:PORT/callback`. Default: any port that is free. */
      port: optional(Schema.Int.pipe(Schema.between(1, 65_535)))
    })
  ),
  /** Only these of its tools, by the server's names for them. Default: all. */
  tools: optional(Schema.Array(Schema.NonEmptyString)),
  /** Seconds without any sign of a call until the call is given up. Default: 120. */
  timeout: optional(Schema.Number.pipe(Schema.finite(), Schema.positive())),
  /** How the program is confined: with the network, unless this says otherwise. */
  sandbox: optional(
    Schema.Struct({ network: optional(Schema.Boolean), writable: optional(Schema.Array(Schema.NonEmptyString)) })
  )
}

/**
 * Either a program or an address.
 *
 * @since 0.1.0
 * @category schemas
 */
export const ServerSettings = /* @__PURE__ */ Lazy.schema(() =>
  Schema.Struct(Fields).pipe(Schema.filter((settings) => flawOf(settings) ?? true))
)
export type ServerSettings = typeof ServerSettings.Type

/**
 * Servers by name.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Servers = /* @__PURE__ */ Lazy.schema(() => Schema.Record({ key: ServerName, value: ServerSettings }))
export type Servers = typeof Servers.Type

/**
 * Where a program stores what signing in to one server yields: one text. Tokens are in it.
 *
 * @since 0.1.0
 * @category models
 */
export interface Credentials {
  readonly read: () => string | undefined
  /** `undefined` deletes it. Throws if it cannot be written. */
  readonly write: (text: string | undefined) => void
}

/**
 * One line for a person who decides: the whole command with its variables, or the address with its headers, and what the
 * program may do beyond the usual.
 *
 * @since 0.1.0
 * @category conversions
 */
export const describe = ({ args = [], command, env = {}, headers = {}, sandbox = {}, url }: ServerSettings): string =>
  url === undefined
    ? [
        ...Object.entries(env).map(([name, value]) => `${name}=${quoted(value)}`),
        ...[command ?? "", ...args].map(quoted),
        ...(sandbox.writable === undefined ? [] : [`(may write ${sandbox.writable.map(quoted).join(", ")})`])
      ].join(" ")
    : [url, ...Object.entries(headers).map(([name, value]) => `with the header ${name}: ${value}`)].join(", ")

/**
 * Whether a server may have this name.
 *
 * @internal
 */
export const isName = (name: string): boolean =>
  /^[A-Za-z0-9](?:[A-Za-z0-9-]|_(?!_)){0,31}$/.test(name) && !name.endsWith("_")

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Members of one way that are written with the other one. */
const foreign = { command: ["headers", "auth"], url: ["args", "env", "sandbox"] } as const

const flawOf = (settings: Schema.Schema.Type<Schema.Struct<typeof Fields>>): string | undefined => {
  const { command, url } = settings
  if (command !== undefined && url !== undefined) return `it has both "command" and "url"; keep one of them`
  if (command === undefined && url === undefined) return `it has neither "command" nor "url"`
  const extra = foreign[url === undefined ? "command" : "url"].find((name) => settings[name] !== undefined)
  if (extra !== undefined)
    return `"${extra}" means nothing for a server with "${url === undefined ? "command" : "url"}"`
  return url === undefined || isWeb(url) ? undefined : `"url" is not an http or https address: ${JSON.stringify(url)}`
}

const isWeb = (url: string): boolean => URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)

const quoted = (word: string): string => (/^[\w@%+=:,./${}-]+$/.test(word) ? word : `'${word.replace(/'/g, `'\\''`)}'`)
