/** Starts the PostgreSQL server of the tests, once for all of them, and stops it. */
import type { TestProject } from "vitest/node"
import * as PostgresServer from "../kit/PostgresServer.js"

declare module "vitest" {
  export interface ProvidedContext {
    readonly postgres: PostgresServer.PostgresServer | undefined
  }
}

const isWanted = (process.env["ASSENT_REQUIRE"] ?? "").split(",").includes("postgres")

export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  if (!PostgresServer.isInstalled) {
    const how = "npm run test:postgres installs it and runs its tests"
    if (isWanted) throw new Error(`The PostgreSQL server of the tests is not installed: ${how}.`)
    process.stderr.write(`No PostgreSQL server here, so its tests are skipped: ${how}.\n`)
    project.provide("postgres", undefined)
    return undefined
  }
  const { server, stop } = await PostgresServer.start()
  project.provide("postgres", server)
  return stop
}
