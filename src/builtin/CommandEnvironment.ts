/**
 * The environment of a model's commands: an allow list of variables that work with compilers, packages and git needs. A
 * variable that is not listed does not reach a command, so an unknown key does not either. Confined and unconfined
 * commands share this list.
 *
 * Left out on purpose: keys and tokens, addresses of collectors, sockets of signing agents (`SSH_AUTH_SOCK`), options
 * that may hold a password (`MAVEN_OPTS`, `GIT_SSH_COMMAND`). A setting may add names to the list.
 */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as WorkspaceRoot from "./WorkspaceRoot.js"

/**
 * Variables by name, as a process has them.
 *
 * @since 0.1.0
 * @category models
 */
export type Environment = Readonly<Record<string, string>>

export interface Options {
  /** Names of further variables that are passed on. */
  readonly passed?: ReadonlyArray<string> | undefined
  /** Names that are never passed on, whatever the settings say. Variables of a collector never are either. */
  readonly withheld?: ReadonlyArray<string> | undefined
  /** Variables that are set. */
  readonly added?: Environment | undefined
}

/** The variables that are always passed on when they are set. */
export const names: ReadonlyArray<string> = [
  // User, places, language and colours.
  "HOME LANG LANGUAGE LOGNAME PATH SHELL TEMP TMP TMPDIR TZ USER CI NO_COLOR FORCE_COLOR SOURCE_DATE_EPOCH",
  "LC_ADDRESS LC_ALL LC_COLLATE LC_CTYPE LC_IDENTIFICATION LC_MEASUREMENT LC_MESSAGES LC_MONETARY LC_NAME LC_NUMERIC",
  "LC_PAPER LC_TELEPHONE LC_TIME LOCALE_ARCHIVE XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME",
  // Proxies, without which there may be no network.
  "HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY http_proxy https_proxy no_proxy all_proxy",
  "SSL_CERT_DIR SSL_CERT_FILE NIX_SSL_CERT_FILE CURL_CA_BUNDLE REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS",
  // Tool chains: their places and options.
  "AR AS CC CFLAGS CPATH CPP CPPFLAGS CXX CXXFLAGS C_INCLUDE_PATH CPLUS_INCLUDE_PATH LD LDFLAGS LDLIBS LIBRARY_PATH",
  "LD_LIBRARY_PATH DYLD_LIBRARY_PATH DYLD_FALLBACK_LIBRARY_PATH MAKEFLAGS PKG_CONFIG_LIBDIR PKG_CONFIG_PATH",
  "CMAKE_PREFIX_PATH DEVELOPER_DIR MACOSX_DEPLOYMENT_TARGET SDKROOT",
  "BUN_INSTALL COREPACK_HOME DENO_DIR DENO_INSTALL FNM_DIR FNM_MULTISHELL_PATH NODE_ENV NODE_OPTIONS NODE_PATH",
  "NPM_CONFIG_CACHE NPM_CONFIG_PREFIX npm_config_cache npm_config_prefix NVM_BIN NVM_DIR PNPM_HOME VOLTA_HOME",
  "CONDA_DEFAULT_ENV CONDA_EXE CONDA_PREFIX PIP_CACHE_DIR PIPX_HOME POETRY_HOME PYENV_ROOT PYENV_VERSION PYTHONHOME",
  "PYTHONPATH PYTHONDONTWRITEBYTECODE PYTHONUNBUFFERED UV_CACHE_DIR VIRTUAL_ENV",
  "CARGO_BUILD_JOBS CARGO_HOME CARGO_TARGET_DIR RUSTFLAGS RUSTUP_HOME RUSTUP_TOOLCHAIN RUST_BACKTRACE",
  "CGO_ENABLED GO111MODULE GOBIN GOCACHE GOFLAGS GOMODCACHE GOPATH GOPRIVATE GOROOT GOTOOLCHAIN",
  "ANDROID_HOME ANDROID_SDK_ROOT GRADLE_HOME GRADLE_USER_HOME JAVA_HOME JDK_HOME KOTLIN_HOME M2_HOME MAVEN_HOME SDKMAN_DIR",
  "BUNDLE_PATH GEM_HOME GEM_PATH RBENV_ROOT RBENV_VERSION RUBYLIB PERL5LIB PERL_LOCAL_LIB_ROOT COMPOSER_HOME",
  "DOTNET_CLI_HOME DOTNET_CLI_TELEMETRY_OPTOUT DOTNET_ROOT NUGET_PACKAGES MIX_ENV OPAM_SWITCH_PREFIX GHCUP_INSTALL_BASE_PREFIX",
  "ASDF_DATA_DIR ASDF_DIR MISE_DATA_DIR HOMEBREW_CELLAR HOMEBREW_PREFIX HOMEBREW_REPOSITORY NIX_PATH NIX_PROFILES",
  "GIT_AUTHOR_EMAIL GIT_AUTHOR_NAME GIT_COMMITTER_EMAIL GIT_COMMITTER_NAME",
  // The mark of an outer call, when we are one of its processes.
  "ASSENT_CALL"
].flatMap((line) => line.split(" "))

/** Whether any command may see the variable: what is not known to be harmless holds a key, as far as anybody can say. */
export const isHarmless = (name: string, value: string): boolean => known.has(name) && !holdsCredentials(value)

/** Makes programs neither wait for a person nor draw a screen. */
export const plain: Environment = { TERM: "dumb", PAGER: "cat", GIT_PAGER: "cat", GIT_TERMINAL_PROMPT: "0" }

/** Marks the processes of one call, so that they are found also outside of its process group. */
const callVariable = "ASSENT_CALL"

/**
 * The environment of a command: the variables passed on from this process, the added ones, and settings for git that no
 * file of a workspace can override.
 */
export const make = ({ added = {}, passed = [], withheld = [] }: Options): Effect.Effect<Environment> =>
  Effect.gen(function* () {
    const found: Record<string, string> = {}
    for (const name of [...names, ...passed]) {
      if (withheld.includes(name) || collector.test(name)) continue
      const value = yield* Effect.option(Config.string(name))
      if (Option.isSome(value) && !holdsCredentials(value.value)) found[name] = value.value
    }
    return withGit({ ...found, ...plain, ...added })
  })

/**
 * The same environment, with a `PATH` that does not lead into the workspace or the working directory: an `ls` that a
 * clone brought, or that `npx` put first, is not the `ls` that was allowed. In a workspace that contains the home such
 * places are the person's own, and come last.
 */
export const outside = (
  environment: Environment,
  { fileSystem, path, roots }: Pick<WorkspaceRoot.Service, "fileSystem" | "path" | "roots">
): Effect.Effect<Environment> =>
  Effect.gen(function* () {
    const { HOME: home, PATH: before } = environment
    if (before === undefined) return environment
    const real = (place: string) => Effect.orElseSucceed(fileSystem.realPath(place), () => path.resolve(place))
    const isInside = (place: string) =>
      roots.some((root) => place === root || place.startsWith(root.endsWith("/") ? root : `${root}/`))
    const [within, beyond] = yield* Effect.partition(
      before.split(":").filter((place) => path.isAbsolute(place)),
      (place) => Effect.flatMap(real(place), (found) => (isInside(found) ? Effect.fail(place) : Effect.succeed(place)))
    )
    const isHome = home !== undefined && isInside(yield* real(home))
    const places = [...beyond, ...(isHome ? within : [])]
    // An empty `PATH` would mean the working directory.
    return { ...environment, PATH: places.length === 0 ? systemPath : places.join(":") }
  })

/** The same environment for one call: its processes carry `token` and the tokens of outer calls. */
export const ofCall = (environment: Environment, token: string): Environment => ({
  ...environment,
  [callVariable]: `${environment[callVariable] ?? ":"}${token}:`
})

/** Whether a process with this environment, as `/proc` shows it, belongs to the call. */
export const belongsTo = (environ: string, token: string): boolean =>
  environ.split("\0").some((entry) => entry.startsWith(`${callVariable}=`) && entry.includes(`:${token}:`))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const known: ReadonlySet<string> = new Set(names)

const collector = /^OTEL_/i

const systemPath = "/usr/local/bin:/usr/bin:/bin"

/** True for an address with a password in it, such as a proxy's. */
const holdsCredentials = (value: string): boolean => /:\/\/[^/\s]*@/.test(value)

// A repository hidden in a directory may name programs that git runs. So a bare repository is used only when named
// explicitly, and no repository can name a file monitor, or a program for signatures that `git log` starts unasked. The
// caller's own git settings come first.
const git: ReadonlyArray<readonly [string, string]> = [
  ["safe.bareRepository", "explicit"],
  ["core.fsmonitor", "false"],
  ["log.showSignature", "false"]
]

const withGit = (environment: Environment): Environment => {
  const settingsBefore = Number(environment["GIT_CONFIG_COUNT"] ?? 0)
  const first = Number.isSafeInteger(settingsBefore) && settingsBefore > 0 ? settingsBefore : 0
  const entries = git.flatMap(([key, value], index) => [
    [`GIT_CONFIG_KEY_${first + index}`, key],
    [`GIT_CONFIG_VALUE_${first + index}`, value]
  ])
  return { ...environment, ...Object.fromEntries(entries), GIT_CONFIG_COUNT: String(first + git.length) }
}
