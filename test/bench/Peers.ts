/**
 * The frameworks that people compare with. They are installed on their own (`npm ci --prefix test/bench`), so that nobody
 * else needs them; without them their columns are left out.
 */
import { existsSync } from "node:fs"
import { resolve } from "node:path"
import { pathToFileURL } from "node:url"

export const areInstalled = (): boolean =>
  ["ai", "@openai/agents", "zod"].every((name) => existsSync(resolve(home, "node_modules", name)))

export const advice = `The AI SDK and OpenAI Agents are left out; to have them beside: npm ci --prefix test/bench`

/** A package by name. The type is the part of it that we use, as the package may not be there when types are checked. */
export const load = async <Package>(name: string): Promise<Package> => {
  const loader = (await import(pathToFileURL(resolve(home, "peers.mjs")).href)) as Loader<Package>
  return loader.load(name)
}

/** The part of zod that declares what a tool takes and what a server is asked. */
export interface Zod {
  readonly z: {
    readonly object: <A>(fields: Readonly<Record<keyof A, unknown>>) => Parser<A>
    readonly number: () => unknown
    readonly string: () => unknown
  }
}

export interface Parser<A> {
  readonly parse: (value: unknown) => A
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** From the root of the repository, where `npm run` starts. */
const home = resolve("test/bench")

interface Loader<Package> {
  readonly load: (name: string) => Promise<Package>
}
