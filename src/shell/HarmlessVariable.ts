/**
 * Variables that a command may set for a program without telling it what to run or to load.
 *
 * An allow list of names: a program may read any other variable as the path to a library, a start file or a pager. A
 * few variables name a program; their value is judged as a text.
 */
import * as Order from "./Order.js"

/** What an assignment makes programs run: in front of a program, or exported. `unknown`: its value is not visible. */
export const orderOf = (assignment: string, unknown: boolean): Order.Order => {
  const [, name = "", value = ""] = /^([A-Za-z_]\w*)\+?=([^]*)$/.exec(assignment) ?? []
  if (programs.test(name)) {
    if (unknown) return Order.dark
    return value.trim() === "" || isShell(name, value) ? Order.nothing : Order.text(value)
  }
  if (names.has(name) || families.test(name)) return Order.nothing
  // A number or a yes/no is no file and no program, unless the variable names a place.
  return !unknown && plainValue.test(value) && !places.test(name) ? Order.nothing : Order.dark
}

/** A number, a yes or a no: no file and no program. */
export const isPlainValue = (value: string): boolean => plainValue.test(value)

/** A usual shell, as the value of `SHELL`. */
export const isShell = (name: string, value: string): boolean =>
  name === "SHELL" && /^(?:(?:\/usr)?\/bin\/)?(?:ba|da|z|k)?sh$/.test(value)

/**
 * The same for an assignment that stands alone. It stays in the shell, unless programs inherited a variable of that
 * name, or the shell itself reads it. `exports`: the command exports variables.
 */
export const orderAlone = (assignment: string, unknown: boolean, exports: boolean): Order.Order => {
  const [, name = ""] = /^([A-Za-z_]\w*)/.exec(assignment) ?? []
  return exports || inherited.test(name) || programs.test(name) ? orderOf(assignment, unknown) : Order.nothing
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const programs =
  /^(?:(?:GIT_|MAN|SYSTEMD_|GH_|AWS_|BAT_|PSQL_)?PAGER|(?:GIT_|GIT_SEQUENCE_|SVN_|HG|KUBE_|GH_|SUDO_)?EDITOR|VISUAL|FCEDIT|BROWSER|GIT_SSH|GIT_SSH_COMMAND|GIT_ASKPASS|SSH_ASKPASS|SUDO_ASKPASS|RSYNC_RSH|CVS_RSH|CC|CXX|CPP|AR|AS|LD|SHELL|GIT_EXTERNAL_DIFF|RUSTC_WRAPPER)$/

const names: ReadonlySet<string> = new Set(
  [
    "NODE_ENV APP_ENV RAILS_ENV RACK_ENV MIX_ENV FLASK_ENV DJANGO_ENV GO_ENV CARGO_ENV BABEL_ENV ENVIRONMENT TEST_ENV TOX_ENV",
    "CI DEBUG VERBOSE QUIET NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE COLORTERM TERM COLUMNS LINES TZ LANG LANGUAGE PORT HOST",
    "RUST_LOG RUST_BACKTRACE RUST_MIN_STACK LOGLEVEL LOG GOOS GOARCH GOARM CGO_ENABLED GO111MODULE GOPRIVATE CARGO_TERM_COLOR",
    "CARGO_INCREMENTAL CARGO_BUILD_JOBS CARGO_NET_OFFLINE PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYTHONIOENCODING",
    "PYTHONHASHSEED PYTHONUTF8 PYTHONFAULTHANDLER SOURCE_DATE_EPOCH DEBIAN_FRONTEND HUSKY CMAKE_BUILD_TYPE BUILD_TYPE VERSION",
    "GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_AUTHOR_DATE GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL GIT_COMMITTER_DATE GIT_EDITOR_TRUE",
    "GIT_TERMINAL_PROMPT GIT_OPTIONAL_LOCKS GIT_MERGE_AUTOEDIT GIT_LFS_SKIP_SMUDGE GIT_INDEX_FILE GIT_CEILING_DIRECTORIES",
    "DOCKER_BUILDKIT COMPOSE_PROJECT_NAME DISPLAY MSG MESSAGE NAME TAG BRANCH TARGET USER LOGNAME HOSTNAME"
  ].flatMap((line) => line.split(" "))
)

const families =
  /^(?:LC_[A-Z]+|(?!GIT_CONFIG|BASH|npm_)[A-Za-z][A-Za-z0-9_]*_(?:URL|URI|HOST|PORT|LEVEL|TOKEN|SECRET|PASSWORD|TIMEOUT|COLOR|REGION|SEED|RETRIES|WORKERS|JOBS|THREADS|DSN|LOCALE|VERSION|DISABLED|ENABLED|VERBOSE|DEBUG|KEY|ID|NAME|EMAIL|COUNT|SIZE|LIMIT))$/

const plainValue = /^(?:|-?\d+(?:\.\d+)?|true|false|yes|no|on|off|test|development|production|debug|info|warn|error)$/i

const places =
  /^(?:PATH|ENV|HOME|IFS|CDPATH|FPATH|PS\d)$|PATH$|^(?:LD|DYLD|BASH|GIT|npm_config)_|_?(?:PRELOAD|RC|FILE|DIR|HOME)$/

/** Variables that commands may inherit, and that shells read. */
const inherited =
  /^(?:PATH|HOME|IFS|ENV|CDPATH|FPATH|SHELL|PS\d|PROMPT_COMMAND|GLOBIGNORE|TMPDIR|TMP|TEMP|LANG|LANGUAGE|LC_\w+|XDG_\w+|BASH\w*|LD_\w+|DYLD_\w+|\w*PATH|\w*FLAGS|\w+_(?:HOME|DIR|ROOT|PREFIX|OPTIONS|OPTS|PROXY|PATH)|GIT_\w+|(?:npm|NPM)_\w+|NODE_\w+|PYTHON\w*|PERL\w*|RUBY\w*|GO[A-Z]+|CARGO_\w+|RUST\w*|HISTFILE|POSIXLY_CORRECT|TIMEFORMAT|EXECIGNORE)$/
