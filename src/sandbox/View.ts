/**
 * What a confined command sees of the file system: an allow list, in the order in which it is laid over an empty one.
 *
 * Whoever builds it names what is to be seen; {@link make} puts the list in order. A writable place is dangerous ground:
 * what runs there may replace a directory by a link before the next call is laid out, or while it is. Hence every directory
 * between a writable place and something of its own inside it becomes a mount too, which cannot be renamed away.
 */

export type Mount =
  /** `from` outside, when it is not the same path. */
  | { readonly _tag: "ReadOnly"; readonly path: string; readonly from?: string }
  | { readonly _tag: "Writable"; readonly path: string; readonly from?: string }
  | { readonly _tag: "Link"; readonly path: string; readonly target: string }
  /** Seen as empty, whatever it holds. */
  | { readonly _tag: "Hidden"; readonly path: string; readonly kind: "directory" | "file" }

export interface View {
  /** Each after what it lies in. Absolute paths without links, `/` between names. */
  readonly mounts: ReadonlyArray<Mount>
  /** The directories in which commands may change what is there outside. */
  readonly roots: ReadonlyArray<string>
  /** Where the private home is seen. */
  readonly home: string
  /** Where it is; nothing when it lives as long as its command. */
  readonly homeFrom: string | undefined
  readonly network: boolean
  /** The whole environment. */
  readonly environment: Readonly<Record<string, string>>
}

/** Puts mounts in order and adds those in between. Of two for one path the later one counts. */
export const make = (view: View): View => {
  const byPath = new Map<string, Mount>()
  for (const mount of view.mounts) byPath.set(mount.path, mount)
  const writable = [...byPath.values()].filter(({ _tag }) => _tag === "Writable").map(({ path }) => path)
  for (const { path } of [...byPath.values()]) {
    for (const between of ancestors(path)) {
      if (byPath.has(between) || !writable.some((root) => isWithin(root, between))) continue
      // What lies in something that is read-only there needs no protection, and must not become writable by it.
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

/** Seen as it is outside, so that a part of it is seen already. */
const isPlain = (mount: Mount | undefined): boolean => mount?._tag === "ReadOnly" && mount.from === undefined

const depth = (path: string): number => (path === "/" ? 0 : path.split("/").length)

/** The directories above a path, nearest first, without the root. */
const ancestors = (path: string): ReadonlyArray<string> => {
  const names = path.split("/").slice(1, -1)
  return names.map((_, index) => `/${names.slice(0, names.length - index).join("/")}`)
}
