/**
 * What people were shown of files that calls would replace. A person's yes is for what they saw, and not for what somebody
 * else wrote while their dialog was open; what tools of the workspace wrote meanwhile was decided, too.
 */
import * as Option from "effect/Option"
import * as Digest from "../core/Digest.js"
import type { Service, Target } from "./WorkspaceRoot.js"

/** What a file held, as of `Change`. */
type Content = Option.Option<string | undefined>

/** Somebody is asked about replacing this file, which holds that now. */
export const show = (workspace: Service, target: Target, before: Content): void => {
  const files = filesOf(workspace)
  const { calls = 0, contents = [] } = files.get(target.absolute) ?? {}
  files.delete(target.absolute)
  files.set(target.absolute, { calls: calls + 1, contents: [...contents, keyOf(target, before)] })
  for (const oldest of files.keys()) if (files.size > most) files.delete(oldest)
}

/** A call is about to replace a file: whether that holds what somebody saw, or what tools wrote since. True where nobody was asked. */
export const take = (workspace: Service, target: Target, before: Content): boolean => {
  const files = filesOf(workspace)
  const shown = files.get(target.absolute)
  if (shown === undefined) return true
  const isAsShown = shown.contents.includes(keyOf(target, before))
  if (!isAsShown || shown.calls === 1) files.delete(target.absolute)
  else files.set(target.absolute, { ...shown, calls: shown.calls - 1 })
  return isAsShown
}

/** A tool has written a file, which others that were shown before are to replace, or none. */
export const wrote = (workspace: Service, target: Target, after: string): void => {
  const files = filesOf(workspace)
  const shown = files.get(target.absolute)
  if (shown === undefined) return
  files.set(target.absolute, { ...shown, contents: [...shown.contents, Digest.sha256(after)] })
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface Shown {
  /** Those that people were asked about and that have not run. */
  readonly calls: number
  readonly contents: ReadonlyArray<string>
}

/** By their absolute path. */
type Files = Map<string, Shown>

const kept = new WeakMap<Service, Files>()

/** Files of one workspace. A call that was denied leaves its file there until others push it out. */
const most = 64

const filesOf = (workspace: Service): Files => {
  const files = kept.get(workspace) ?? new Map<string, Shown>()
  kept.set(workspace, files)
  return files
}

const keyOf = ({ info }: Target, before: Content): string =>
  Option.match(before, {
    onNone: () => "none",
    onSome: (text) =>
      text === undefined
        ? `${Option.match(info, { onNone: () => "", onSome: ({ size }) => size })} bytes`
        : Digest.sha256(text)
  })
