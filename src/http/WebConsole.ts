/**
 * The files of the web console. They need no token: they are the same for everybody, and the page reads the token out of the
 * fragment of its address.
 *
 * A file is read when a browser asks for it the first time. The start of a server reads none.
 */
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { join } from "node:path"
import * as OwnFile from "../host/local/OwnFile.js"

/** Answers a path of the console; nothing for any other path. */
export type WebConsole = (path: string) => HttpServerResponse.HttpServerResponse | undefined

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** `directory`: where the files are. */
export const make = (directory: string): WebConsole => {
  const known = new Map<string, HttpServerResponse.HttpServerResponse>()
  return (path) => {
    const [pathname = ""] = path.split("?")
    const file = Object.hasOwn(files, pathname) ? files[pathname] : undefined
    if (file === undefined) return undefined
    const before = known.get(pathname)
    if (before !== undefined) return before
    const content = OwnFile.read(join(directory, file.name), longest)
    if (content._tag !== "Text") return absent
    const response = HttpServerResponse.text(content.text, { contentType: file.type, headers: { ...policy } })
    known.set(pathname, response)
    return response
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const files: { readonly [path: string]: { readonly name: string; readonly type: string } | undefined } = {
  "/": { name: "index.html", type: "text/html; charset=utf-8" },
  "/console.js": { name: "console.js", type: "text/javascript; charset=utf-8" },
  "/console.css": { name: "console.css", type: "text/css; charset=utf-8" },
  "/icon.svg": { name: "icon.svg", type: "image/svg+xml" }
}

/** In bytes. */
const longest = 4_000_000

/** Scripts, styles and data of this server only; no text becomes markup. */
const policy = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; " +
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  "cross-origin-opener-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=()"
}

const absent = HttpServerResponse.unsafeJson(
  {
    _tag: "NotFound",
    message: "This installation has no web console. Install the package again, or run: npm run build"
  },
  { status: 404 }
)
