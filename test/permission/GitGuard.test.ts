import * as NodeContext from "@effect/platform-node/NodeContext"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "effect/FastCheck"
import * as GitGuard from "../../src/permission/GitGuard.js"
import * as Guard from "../../src/permission/Guard.js"
import * as PermissionRule from "../../src/permission/PermissionRule.js"
import * as Kit from "../kit/gate.js"

/** What the guard says of commands and of paths, in a workspace that holds what {@link inWorkspace} lays there. */
interface Asking {
  readonly command: (text: string, cwd?: string) => Effect.Effect<boolean>
  readonly confined: (text: string) => Effect.Effect<boolean>
  readonly write: (path: unknown) => Effect.Effect<boolean>
  readonly read: (path: string) => Effect.Effect<boolean>
}

const unpacking = [
  "tar xf a.tar",
  "tar -xzf a.tgz",
  "tar --extract --file=a.tar",
  "bsdtar -xf a",
  "unzip a.zip",
  "unzip -o a.zip",
  "cpio -i < a",
  "patch -p1 < a.diff",
  "patch -p1 -i a.diff",
  "7z x a.7z",
  "unrar x a.rar"
]

const inWorkspace = (use: (asking: Asking) => Effect.Effect<void>) =>
  Effect.gen(function* () {
    const fileSystem = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const workspace = yield* Effect.flatMap(fileSystem.makeTempDirectoryScoped(), fileSystem.realPath)
    for (const directory of [
      ".git/hooks",
      "nested/deep/.git/hooks",
      "apart/objects",
      "apart/hooks",
      "bare.git/objects",
      "bare.git/hooks",
      "shared",
      "src",
      "template/.git/hooks",
      "plain/objects",
      "inner/deeper/bare/objects",
      "inner/deeper/bare/hooks"
    ]) {
      yield* fileSystem.makeDirectory(`${workspace}/${directory}`, { recursive: true })
    }
    for (const file of [
      "apart/HEAD",
      "bare.git/HEAD",
      "inner/deeper/bare/HEAD",
      "shared/HEAD",
      "shared/commondir",
      "src/a.ts"
    ]) {
      yield* fileSystem.writeFileString(`${workspace}/${file}`, "x")
    }
    yield* fileSystem.makeDirectory(`${workspace}/separate`)
    yield* fileSystem.writeFileString(`${workspace}/separate/.git`, "gitdir: ../apart")
    yield* fileSystem.symlink(".git", `${workspace}/innocent`)
    yield* fileSystem.symlink("../.git/hooks", `${workspace}/src/docs`)
    yield* fileSystem.symlink(".git/config", `${workspace}/settings`)
    yield* fileSystem.symlink("src", `${workspace}/src-link`)
    const guard = GitGuard.make({ fileSystem, path, workspace })
    const { tools } = { tools: yield* Kit.registry }
    const entry = tools.get("shell")
    assert(entry !== undefined)
    const ask = (params: unknown, more: Partial<typeof entry>) => {
      const changed = { ...entry, ...more }
      const subject = PermissionRule.subject({ tool: entry.name, params, commandField: changed.shellCommand })
      return Effect.map(
        Effect.orDie(guard({ tool: entry.name, params, subject, entry: changed })),
        (found) => found instanceof Guard.Ask
      )
    }
    yield* use({
      command: (command, cwd) => ask({ command, cwd }, { paths: ["cwd"] }),
      confined: (command) => ask({ command }, { paths: ["cwd"], runs: () => "confined" }),
      write: (path) => ask({ path }, { shellCommand: undefined, paths: ["path"] }),
      read: (path) => ask({ path }, { shellCommand: undefined, paths: ["path"], readonly: true })
    })
  }).pipe(Effect.scoped, Effect.provide(NodeContext.layer))

const table = <A>(
  ask: (input: A) => Effect.Effect<boolean>,
  expected: boolean,
  inputs: ReadonlyArray<A>
): Effect.Effect<void> =>
  Effect.map(
    Effect.forEach(inputs, (input) => Effect.map(ask(input), (asked) => [input, asked] as const)),
    (rows) =>
      assert.deepStrictEqual(
        rows,
        inputs.map((input) => [input, expected] as const)
      )
  )

describe("a question of its own", () => {
  it.live("is wanted for a file tool that writes there, however it is spelled", () =>
    inWorkspace(({ write }) =>
      table<unknown>(write, true, [
        ".git",
        ".git/config",
        ".git/hooks/pre-commit",
        "./.git/info/attributes",
        ".GIT/config",
        ".g\u200cit/config",
        "git~1/config",
        "src/../.git/config",
        "nested/deep/.git/hooks/x",
        "new/.git/config",
        "separate/.git",
        "apart/hooks/pre-commit",
        "bare.git/config",
        "shared/config",
        "innocent/config",
        "src/docs/pre-commit",
        "settings",
        "src-link/docs/x",
        "src-link/../.git/x",
        ["src/a.ts", ".git/config"]
      ])
    )
  )

  it.live("is not wanted for what reads, and for other files", () =>
    inWorkspace(({ read, write }) =>
      Effect.zipRight(
        table(read, false, [".git/config", "apart/HEAD"]),
        table<unknown>(write, false, [
          "src/a.ts",
          ".gitignore",
          ".gitattributes",
          ".github/workflows/x.yml",
          "foo.git.ts",
          "plain/objects/x",
          "src-link/new.ts",
          "nested/x",
          undefined
        ])
      )
    )
  )

  it.live("is wanted for a command that may write there", () =>
    inWorkspace(({ command }) =>
      table(command, true, [
        "echo x > .git/config",
        "echo x >> ./.git/hooks/pre-commit",
        "cat a | tee .git/hooks/x",
        "cp x .git/hooks/",
        "rm -rf .git",
        "mv .git old",
        "ln -s .git x",
        "chmod +x .git/hooks/pre-commit",
        "dd if=x of=.git/config",
        "cd .git && echo x > config",
        "cd nested/deep && cp x .git/hooks/y",
        "cp x .g?t/hooks/y",
        "cp x .[g]it/hooks/y",
        "cp x .{git,foo}/hooks/y",
        'cp x ".gi"t/hooks/y',
        "cp x .gi\\t/hooks/y",
        "cp x .gi${A}t/hooks/y",
        "D=.git; echo x > $D/config",
        "D=.git; cp x $D/hooks/y",
        "cp x innocent/hooks/y",
        "cp x src/docs/y",
        "echo x > settings",
        "echo x > apart/hooks/y",
        "tee shared/config < x",
        "cp -r template/. .",
        "cp -r template src",
        "rm -rf nested/deep",
        "mv nested/deep elsewhere",
        "sh -c 'echo x > .git/config'",
        "node -e \"require('fs').writeFileSync('.git/hooks/x', '')\"",
        "find . -name x -exec cp {} .git/hooks/ ;",
        "xargs -I{} cp {} .git/hooks/",
        "git diff --output=.git/hooks/x",
        'cp x "$(git rev-parse --git-dir)/hooks/y"',
        "cp x $(git rev-parse --git-path hooks)/y",
        "cp x $GIT_DIR/hooks/y",
        "for i in 1; do echo x > .git/config; done",
        "cat > .git/config <<EOF\nx\nEOF",
        // A glob finds what leads there by another name.
        "cp x inn*/hooks",
        "tee */hooks",
        "echo x > ap*/HEAD",
        "cp x src/d*",
        "cd inno* && cp ../x hooks",
        // Whatever changes the directory, and however often.
        "cd inner; cd deeper; cp x bare/hooks/y",
        "cd inner && cd deeper && cd bare && cp x hooks/y",
        "cd inner/deeper; cd ..; cd ..; cd apart; cp x hooks/y",
        "cd -- apart && cp x hooks/y",
        "cd -P apart && cp x hooks/y",
        "command cd apart && cp x hooks/y",
        "builtin cd apart && cp x hooks/y",
        "D=apart; cd $D; cp x hooks/y",
        "for d in src apart; do cd $d; cp x hooks/y; done",
        "(cd apart; cp x hooks/y)",
        "sh -c 'cd apart; cp x hooks/y'",
        // Nor what is around it.
        "if true; then cp x apart/hooks/y; fi",
        "while true; do echo x > apart/hooks/y; done",
        "f() { cp x innocent/hooks/y; }; f",
        "for f in a; do cp -r template/. .; done",
        "if true; then find . -type f -exec sed -i s/a/b/ {} +; fi",
        "if true; then find . -type f | xargs sed -i s/a/b/; fi",
        "select d in apart; do cd $d; cp x hooks/y; done",
        "env -C apart cp x hooks/y",
        "env --chdir=apart cp x hooks/y",
        "sudo --chdir=apart cp x hooks/y",
        `${Array.from({ length: 17 }, (_, at) => `cd d${at}`).join("; ")}; cp x hooks/y`,
        // A name in codes cannot be seen.
        "cp x $'.\\x67it/hooks'",
        "for d in .g*; do cp x $d/hooks; done",
        'bash -c "cd .g*; cp x hooks"',
        // What is printed is what another program writes to.
        "echo .git | xargs -I{} cp x {}/hooks",
        "ls -d .g* | xargs cp x",
        "find . -name '.g*' | xargs -I% cp x %/hooks",
        // Git runs what these say, and from where they say.
        "git config core.hooksPath evil",
        "git config --local core.fsmonitor ./evil",
        "git -c a.b=c config alias.st '!evil'",
        "env git config set filter.x.clean evil",
        "git -C nested/deep config --add include.path ../x",
        "git config --unset safe.directory",
        "git config -f x a.b c",
        "git config --edit",
        "cat a && tee .git/x",
        "git config edit",
        // What is written there comes from elsewhere, or under another name.
        "echo core.hooksPath x | xargs git config",
        "echo config core.hooksPath x | xargs git",
        "echo config | xargs -I{} git {} core.hooksPath x",
        "A=config; git $A core.hooksPath x",
        "A='config core.hooksPath x'; git $A",
        "G=git; $G config core.hooksPath x",
        "git $(echo config) core.hooksPath x",
        // Classes that only shells know.
        "cp x .[[:alpha:]]it/hooks",
        "cp x .[^x]it/hooks",
        "cp x [^a]are.git/hooks",
        "tee ap[[:lower:]]rt/HEAD",
        "mv .[^.]* x",
        "cd [^i]part && touch hooks/x",
        // New repositories that bring hooks or settings.
        "git init --template=evil x",
        "git init --template evil",
        "git init --templ=evil",
        "git clone --template=evil a b",
        "git -C x init --template=evil",
        "git -c init.templateDir=evil init x",
        "GIT_TEMPLATE_DIR=evil git init",
        "export GIT_TEMPLATE_DIR=evil; git init",
        "git clone -c core.hooksPath=evil a b",
        "git clone --config core.fsmonitor=evil a b",
        "git clone --config=core.fsmonitor=evil a b",
        "env git init --template=evil",
        // What is taken along holds one further down.
        "cp -r nested elsewhere",
        "cp -R nested/. elsewhere",
        "rsync -a nested/ elsewhere",
        "cd nested && cp -r deep ../src",
        // What looks for files finds those.
        "find . -type f -exec sed -i s/a/b/ {} +",
        "find -type f -exec sed -i s/a/b/ {} +",
        "find . -name config -exec cp x {} \\;",
        "find . -name 'pre-*' -exec tee {} \\;",
        "find . -iname 'CONF*' -execdir cp x {} \\;",
        "find nested -exec chmod +x {} +",
        "find . -name '*.ts' -o -name config -exec cp x {} \\;",
        "find . ! -name '*.ts' -exec cp x {} \\;",
        "find . -type f -delete",
        "find . -type f | xargs sed -i s/a/b/",
        "find . -print0 | xargs -0 -n1 cp x",
        "find . -type f | xargs -I{} cp x {}",
        "grep -rl x . | xargs sed -i s/a/b/",
        "grep -rl x | xargs sed -i s/a/b/",
        "grep -Rl --include='conf*' x . | xargs sed -i s/a/b/",
        "rg -l --hidden x | xargs sed -i s/a/b/",
        "sed -i s/a/b/ $(grep -rl x .)",
        "sed -i s/a/b/ `find . -type f`",
        "find . -name '*.sample' -exec mv {} x \\;",
        "find . -type f | while read f; do sed -i s/a/b/ $f; done",
        "for f in $(find . -type f); do sed -i s/a/b/ $f; done",
        "grep -rl x . | while read f; do echo > $f; done",
        "fd -H config -x rm",
        "fd -HI -t f -X sed -i s/a/b/",
        "fd --hidden -e x --exec=rm",
        "ls -A | xargs rm -rf",
        "ls -a1 | xargs -n1 cp x",
        "tree -afi | xargs rm",
        "du -a | cut -f2 | xargs rm",
        "chmod -R +x nested",
        "chown -R me ."
      ])
    )
  )

  it.live("is wanted where the command runs there", () =>
    inWorkspace(({ command }) =>
      table((cwd) => command("cp x y", cwd), true, [".git", ".git/hooks", "innocent", "apart", "src/docs"])
    )
  )

  it.live("is not wanted for everyday commands", () =>
    inWorkspace(({ command }) =>
      table(command, false, [
        "git status",
        "git commit -m 'x y'",
        "git config user.name me",
        "git config --global user.email me@example.com",
        "git config core.hooksPath",
        "git config --get core.fsmonitor",
        "git config --show-origin --list",
        "git config -l",
        "git config list",
        "cat .git/HEAD | grep ref",
        "ls src/*.ts | xargs cat",
        "git -c core.pager=cat log",
        "git clone https://example.com/a/b.git",
        "git clone git@example.com:me/my_repo.git",
        "cat .git/config",
        "ls -la .git/hooks",
        "find . -name '*.ts' -not -path './.git/*'",
        "grep -rn --exclude-dir=.git x .",
        "tar czf a.tgz --exclude=.git src",
        "cat < .git/HEAD",
        "cat .git/HEAD && npm test",
        "npm test",
        "cp src/a.ts .",
        "cp -r src other",
        "rm -rf src",
        "echo x > .gitignore",
        "mkdir -p .github/workflows",
        "rm -rf *",
        "cp a $X",
        "curl https://example.com/$ID/file.txt -o x",
        "cd src && make",
        "cd inner; cd deeper; cp x y",
        "for f in *.ts; do wc -l $f; done",
        "if true; then cp src/a.ts src/b.ts; fi",
        "while read l; do echo $l; done < src/a.ts",
        "git init",
        "git init --template= x",
        "git clone -c user.name=x a b",
        "git clone -c core.autocrlf=input a b",
        "find . -type f -exec grep x {} +",
        "find . -name '*.ts' -exec sed -i s/a/b/ {} +",
        "find src -type f -exec sed -i s/a/b/ {} +",
        "find . -name '*.ts' | xargs sed -i s/a/b/",
        "find . -name '*.tmp' -delete",
        "find . -type f | xargs wc -l",
        "find . -type f | xargs grep x",
        "grep -rl x src | xargs sed -i s/a/b/",
        "grep -rl --include='*.ts' x . | xargs sed -i s/a/b/",
        "rg -l x | xargs sed -i s/a/b/",
        "grep -rn x . | head",
        "ls -R | wc -l",
        "echo $(grep -rl x .)",
        "git ls-files | xargs sed -i s/a/b/",
        "cp -r src plain other",
        "tar xf a.tar -C src",
        "tar --directory=src -xzf a.tgz",
        "unzip a.zip -d src",
        "patch -d src -p1 < a.diff",
        "tar czf a.tgz src",
        "tar tf a.tgz",
        "for f in $(find . -type f); do wc -l $f; done",
        "for f in $(find . -name '*.ts'); do sed -i s/a/b/ $f; done",
        "fd -H config -x cat",
        "ls -la | wc -l",
        "ls -a && npm test",
        "chmod -R +x src/deep",
        "git log $REF",
        "echo src/a.ts | xargs git add",
        "echo me | xargs git config user.name",
        "unzip -l a.zip",
        "patch --dry-run -p1 < a.diff"
      ])
    )
  )

  it.effect("is wanted for an archive or a patch, unless a sandbox keeps it from there", () =>
    inWorkspace(({ command, confined }) =>
      Effect.all([
        table(command, true, unpacking),
        table(command, true, ["sudo tar xf a.tar", "curl h | tar xz", "tar xf a.tar -C nested", "tar xf a -C $X"]),
        table(confined, false, unpacking),
        table((text) => command(text, "src"), false, unpacking)
      ])
    )
  )

  it.effect.prop(
    "is wanted whatever quotes and escapes a shell takes away",
    {
      at: fc.nat(3),
      how: fc.constantFrom("''", '""', "\\", "'.'", '"."'),
      tool: fc.constantFrom("tee ", "rm -f ", "echo > ")
    },
    ({ at, how, tool }) =>
      inWorkspace(({ command }) => {
        const name = ".git"
        const char = name[at] ?? ""
        const spelled =
          name.slice(0, at) +
          (how === "\\" ? `\\${char}` : how.length === 2 ? how + char : how.replace(".", char)) +
          name.slice(at + 1)
        return Effect.map(command(`${tool}${spelled}/config`), (asked) => assert.isTrue(asked, spelled))
      }),
    { fastCheck: { numRuns: 60 } }
  )
})
