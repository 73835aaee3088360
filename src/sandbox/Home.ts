/**
 * What a home holds beside projects: keys, and files that start programs later. Where a person gives a home to commands,
 * keys are hidden, and start files are not written.
 */
import { isWithin } from "./View.js"

export interface Home {
  readonly keys: ReadonlyArray<string>
  readonly startFiles: ReadonlyArray<string>
}

/** `search`: the search path. Its directories in the home hold programs that the person runs. */
export const at = (home: string, search: string): Home => {
  const below = (names: ReadonlyArray<string>) => names.map((name) => `${home}/${name}`)
  const programs = search
    .split(":")
    .map((directory) => directory.replace(/\/+$/, ""))
    .filter((directory) => directory !== home && isWithin(home, directory) && !/\/\.{0,2}(?:\/|$)/.test(directory))
  return { keys: below(keys), startFiles: [...new Set([...below(startFiles), ...programs])] }
}

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
