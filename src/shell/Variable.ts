/**
 * Variables of a process by their names: those that decide which program starts, what it loads, or whose settings it
 * reads. A line that sets one of them does more than its words say.
 */

/** Setting it changes no program that starts. */
export const isPlain = (name: string): boolean => !deciding.test(name)

/** The same for `NAME=value`: a pager or an editor that does nothing is plain too. */
export const isPlainAssignment = (text: string): boolean => {
  const [, name = "", value = ""] = /^([A-Za-z_]\w*)\+?=(.*)$/s.exec(text) ?? []
  return name !== "" && (isPlain(name) || (acting.test(name) && idle.test(value)))
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const deciding = new RegExp(
  "^(?:" +
    [
      "PATH|HOME|ENV|SHELL|SHELLOPTS|BASHOPTS|BASH_.*|PROMPT_COMMAND|PS4|CDPATH|EXECIGNORE|LD_.*|DYLD_.*|GCONV_PATH|LOCPATH|NLSPATH",
      "PAGER|MANPAGER|BROWSER|EDITOR|VISUAL|FCEDIT|LESS.*|MANPATH|XDG_.*|TERMINFO.*|INPUTRC|MALLOC_.*|GLIBC_.*",
      "GIT_(?!AUTHOR_|COMMITTER_|OPTIONAL_LOCKS$|TERMINAL_PROMPT$|MERGE_AUTOEDIT$).*|SSH_.*|SUDO_.*|.*_ASKPASS|.*_PROXY|.*_proxy",
      "NODE_(?!ENV$).*|NPM_.*|npm_.*|YARN_.*|COREPACK_.*|PYTHON.*|PIP_.*|VIRTUAL_ENV|PERL.*|RUBY.*|GEM_.*|BUNDLE_.*|RB.*",
      "JAVA_.*|_JAVA_.*|JDK_.*|CLASSPATH|MAVEN_.*|GRADLE_.*|CARGO_.*|RUST.*|GO[A-Z]+|PHP_?.*|DOTNET_.*|LUA_.*|AWK.*|JQ_.*",
      "RIPGREP_.*|GREP_.*|FZF_.*|BAT_.*|TAR_.*|GZIP|XZ_.*|ZSTD_.*|RSYNC_.*|CC|CXX|MAKE.*|DOCKER_.*|KUBE.*|SQLITE_.*|OPENSSL_.*"
    ].join("|") +
    ")$"
)

/** They name a program that others start. */
const acting = /^(?:GIT_)?(?:PAGER|EDITOR|SEQUENCE_EDITOR)$/
const idle = /^(?:|cat|true|:)$/
