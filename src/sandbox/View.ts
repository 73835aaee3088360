/**
 * What a confined command sees of the file system: an allow list, in the order in which it is mounted over an empty
 * one.
 *
 * The caller names the visible paths; {@link make} puts them in order. A writable place is dangerous: a command there
 * may replace a directory by a link before the next layout is made, or during it. Hence every directory between a
 * writable place and another mount inside it becomes a mount too, which cannot be renamed away.
 */

export type Mount =
  /** `from` is the path outside, when it differs. */
  | { readonly _tag: "ReadOnly"; readonly path: string; readonly from?: string }
  | { readonly _tag: "Writable"; readonly path: string; readonly from?: string }
  | { readonly _tag: "Link"; readonly path: string; readonly target: string }
  /** Visible as empty, with any contents. */
  | { readonly _tag: "Hidden"; readonly path: string; readonly kind: "directory" | "file" }

export interface View {
  /** Each mount comes after the one it lies in. Absolute paths without links, `/` between names. */
  readonly mounts: ReadonlyArray<Mount>
  /** The directories in which commands may change the files outside. */
  readonly roots: ReadonlyArray<string>
  /** Where the private home is visible. */
  readonly home: string
  /** Its place outside; nothing when it lives as long as its command. */
  readonly homeFrom: string | undefined
  readonly network: boolean
  /** The whole environment. */
  readonly environment: Readonly<Record<string, string>>
}

/**
 * Puts mounts in order and adds those in between. The later of two mounts for one path counts. Nothing is mounted in a
 * directory that is hidden: it is empty, and nothing can be made there.
 */
export const make = (view: View): View => {
  const byPath = new Map<string, Mount>()
  for (const mount of view.mounts) byPath.set(mount.path, mount)
  for (const { path } of [...byPath.values()].filter(({ _tag }) => _tag === "Hidden")) {
    for (const inside of byPath.keys()) if (inside !== path && isWithin(path, inside)) byPath.delete(inside)
  }
  const writable = [...byPath.values()].filter(({ _tag }) => _tag === "Writable").map(({ path }) => path)
  for (const { path } of [...byPath.values()]) {
    for (const between of ancestors(path)) {
      if (byPath.has(between) || !writable.some((root) => isWithin(root, between))) continue
      // A path inside a read-only mount needs no protection, and must not become writable by it.
      const nearest = ancestors(between).find((above) => byPath.has(above))
      if (nearest !== undefined && byPath.get(nearest)?._tag !== "Writable") continue
      byPath.set(between, { _tag: "Writable", path: between })
    }
  }
  const isNew = (mount: Mount): boolean => {
    const above = ancestors(mount.path).find((place) => byPath.has(place))
    return !isPlain(mount) || above === undefined || !isPlain(byPath.get(above))
  }
  const mounts = [...byPath.values()].filter(isNew)
  return { ...view, mounts: mounts.sort((a, b) => depth(a.path) - depth(b.path)) }
}

/** Whether `path` is `directory` or lies in it. */
export const isWithin = (directory: string, path: string): boolean =>
  directory === "/" || path === directory || path.startsWith(`${directory}/`)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Visible at the same path as outside, so its contents are visible already. */
const isPlain = (mount: Mount | undefined): boolean => mount?._tag === "ReadOnly" && mount.from === undefined

const depth = (path: string): number => (path === "/" ? 0 : path.split("/").length)

/** The directories above a path, nearest first, without the root. */
const ancestors = (path: string): ReadonlyArray<string> => {
  const names = path.split("/").slice(1, -1)
  return names.map((_, index) => `/${names.slice(0, names.length - index).join("/")}`)
}
