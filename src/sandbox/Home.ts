/**
 * What a home holds beside projects: keys, and files that start programs later. Where a person gives a home to an agent,
 * neither commands nor file tools see the keys, and neither writes the start files. Both read this one value.
 */
import type * as FileSystem from "@effect/platform/FileSystem"
import type * as Path from "@effect/platform/Path"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { isWithin } from "./View.js"

export interface Home {
  readonly keys: ReadonlyArray<string>
  readonly startFiles: ReadonlyArray<string>
}

/**
 * The part of a home that lies in these directories; all are absolute and without links. A directory that was named itself, or
 * that lies in such a place, was given on purpose. `search`: the search path. In a home that is given as a whole, its
 * directories hold programs that the person runs.
 */
export const within = (home: string, search: string, roots: ReadonlyArray<string>): Home => {
  const isGiven = (file: string) =>
    roots.some((root) => isWithin(root, file)) && !roots.some((root) => isWithin(file, root))
  const below = (names: ReadonlyArray<string>) => names.map((name) => `${home}/${name}`).filter(isGiven)
  const programs = search
    .split(":")
    .map((directory) => directory.replace(/\/+$/, ""))
    .filter((directory) => directory !== home && isWithin(home, directory) && !/\/\.{0,2}(?:\/|$)/.test(directory))
  const isWhole = roots.some((root) => isWithin(root, home))
  return { keys: below(keys), startFiles: [...new Set([...below(startFiles), ...(isWhole ? programs : [])])] }
}

/** The same of the home that the environment names. */
export const find = (
  fileSystem: FileSystem.FileSystem,
  path: Path.Path,
  roots: ReadonlyArray<string>
): Effect.Effect<Home> =>
  Effect.gen(function* () {
    const named = yield* Effect.option(Config.nonEmptyString("HOME"))
    if (Option.isNone(named)) return { keys: [], startFiles: [] }
    const written = path.resolve(named.value)
    const home = yield* Effect.orElseSucceed(fileSystem.realPath(written), () => written)
    const search = yield* Effect.orElseSucceed(Config.string("PATH"), () => "")
    // A search path may name the home by a link.
    const places = search
      .split(":")
      .map((place) => (isWithin(written, place) ? home + place.slice(written.length) : place))
    return within(home, places.join(":"), roots)
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const keys = [
  ".ssh",
  ".gnupg",
  ".aws",
  ".azure",
  ".kube",
  ".docker",
  ".oci",
  ".terraform.d",
  ".password-store",
  ".mozilla",
  ".thunderbird",
  ".pki",
  ".netrc",
  ".npmrc",
  ".yarnrc.yml",
  ".pypirc",
  ".pgpass",
  ".my.cnf",
  ".git-credentials",
  ".vault-token",
  ".cargo/credentials",
  ".cargo/credentials.toml",
  ".gem/credentials",
  ".m2/settings.xml",
  ".config/gcloud",
  ".config/gh",
  ".config/glab-cli",
  ".config/op",
  ".config/sops",
  ".config/containers",
  ".config/git/credentials",
  ".config/google-chrome",
  ".config/chromium",
  ".config/BraveSoftware",
  ".config/microsoft-edge",
  ".local/share/keyrings",
  ".local/share/kwalletd",
  ".bash_history",
  ".zsh_history",
  ".python_history",
  ".node_repl_history",
  ".psql_history",
  "Library/Keychains",
  "Library/Cookies",
  "Library/Application Support/Google/Chrome",
  "Library/Application Support/Firefox"
]

const startFiles = [
  ".profile",
  ".bash_profile",
  ".bash_login",
  ".bash_logout",
  ".bash_aliases",
  ".bashrc",
  ".zshenv",
  ".zprofile",
  ".zshrc",
  ".zlogin",
  ".zlogout",
  ".kshrc",
  ".inputrc",
  ".pam_environment",
  ".xinitrc",
  ".xprofile",
  ".xsession",
  ".xsessionrc",
  ".gitconfig",
  ".hgrc",
  ".vimrc",
  ".vim",
  ".emacs",
  ".emacs.d",
  ".tmux.conf",
  ".gdbinit",
  ".direnvrc",
  ".cargo/config.toml",
  ".cargo/config",
  ".gradle/init.d",
  ".gradle/gradle.properties",
  ".config/fish",
  ".config/autostart",
  ".config/systemd",
  ".config/environment.d",
  ".config/git",
  ".config/hg",
  ".config/nvim",
  ".config/direnv",
  ".config/tmux",
  ".local/bin",
  ".local/share/systemd",
  ".local/share/applications",
  "bin",
  "Library/LaunchAgents"
]
