/**
 * What a caller says for one start, before environment and files: the flags of a command line, or the fields of a request.
 * They are named as the flags, because messages name them so.
 */

import type { Servers } from "../tool/ServerSettings.js"

/** What settings are read with. */
export interface Overrides {
  /** Default: the current directory. */
  readonly workspace?: string | undefined
  readonly model?: string | undefined
  readonly "base-url"?: string | undefined
  /** `none` is no profile. */
  readonly profile?: string | undefined
  readonly mode?: string | undefined
  readonly mediator?: string | undefined
  /** A model, or `none`. */
  readonly reviewer?: string | undefined
  /** A time, or `none`. */
  readonly escalate?: string | undefined
  /** A file with a policy that holds alone. */
  readonly policy?: string | undefined
  /** A file with the key of the audit. */
  readonly key?: string | undefined
  readonly store?: string | undefined
  readonly sandbox?: string | undefined
  readonly "allow-home"?: boolean | undefined
  readonly "add-dir"?: ReadonlyArray<string> | undefined
  readonly trust?: boolean | undefined
  readonly yolo?: boolean | undefined
  /** Tool servers beside those of files; before one of the same name. */
  readonly servers?: Servers | undefined
  /** A directory with the model keys of tenants. */
  readonly "model-keys"?: string | undefined
  /** Tenants have their own model keys only. */
  readonly "own-model-keys"?: boolean | undefined
  /** Whose session it is. Default: nobody's. */
  readonly tenant?: string | undefined
  /** A program at the other end answers. */
  readonly jsonl?: boolean | undefined
}

/** Which session of the store is selected. Default: a new one. */
export interface Selection extends Overrides {
  readonly resume?: string | undefined
  readonly continue?: boolean | undefined
}
