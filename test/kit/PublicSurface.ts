/**
 * The package's public declarations, read from the build: the names of every public module, each with its type as text,
 * its doc comment, and the mentioned types that cannot be imported.
 *
 * ```
 *  exports of package.json ──► dist/lib/…d.ts ──► names ──► text without comments, members of unions in order
 * ```
 *
 * Packages are not looked into, so this takes a second: a type of Effect's is its name.
 */
import { readFileSync } from "node:fs"
import { dirname, relative, resolve } from "node:path"
import ts from "typescript"

/** `since` and `category`, for example, with what follows them. */
export type Tags = ReadonlyMap<string, string>

/** A name that a public module exports. */
export interface PublicName {
  readonly name: string
  /** What is declared, without comments: the declaration itself and what it refers to in its own file. */
  readonly text: string
  readonly isDocumented: boolean
  /** The tags of its doc comments with their texts. A namespace has those of its module. */
  readonly tags: Tags | "module"
  /** Types it mentions, as `room/Module.Name`, that no public module exports. */
  readonly hidden: ReadonlyArray<string>
}

/** A module by its path below `dist/lib`, such as `runtime/Agent`. */
export interface PublicModule {
  readonly path: string
  readonly isDocumented: boolean
  readonly tags: Tags
  readonly names: ReadonlyArray<PublicName>
}

const library = resolve("dist/lib")

/** The modules that `package.json` exports, by their paths below `dist/lib`; each once, whatever other paths it has. */
const exported: ReadonlyArray<string> = [
  ...new Set(
    Object.values(
      (JSON.parse(readFileSync("package.json", "utf8")) as { exports: Record<string, { types: string } | string> })
        .exports
    ).flatMap((target) =>
      typeof target === "string" ? [] : [target.types.slice("./dist/lib/".length, -".d.ts".length)]
    )
  )
]

/** What is declared, and the names that declarations refer to and that are gone from them, being internal. */
export interface PublicSurface {
  readonly modules: ReadonlyArray<PublicModule>
  readonly dangling: ReadonlyArray<string>
}

/** Reads the public modules. They must be built. */
export const read = (): PublicSurface => {
  const fileOf = (path: string) => resolve(library, `${path}.d.ts`)
  // Of some, such as those of `assent/sql`, only a namespace is exported.
  const namespaces = exported.flatMap((path) =>
    Array.from(readFileSync(fileOf(path), "utf8").matchAll(/^export \* as \w+ from "(.+)\.js"/gm), ([, to = ""]) =>
      shown(resolve(dirname(fileOf(path)), `${to}.d.ts`))
    )
  )
  const modules = [...new Set([...exported, ...namespaces])].sort()
  const options: ts.CompilerOptions = { types: [], noLib: true, target: ts.ScriptTarget.ES2022 }
  const host: ts.CompilerHost = {
    ...ts.createCompilerHost(options),
    resolveModuleNameLiterals: (literals, from) =>
      literals.map(({ text }) => ({
        resolvedModule: text.startsWith(".")
          ? {
              resolvedFileName: resolve(dirname(from), text.replace(/\.js$/, ".d.ts")),
              extension: ts.Extension.Dts,
              isExternalLibraryImport: false
            }
          : undefined
      }))
  }
  const program = ts.createProgram(modules.map(fileOf), options, host)
  const checker = program.getTypeChecker()
  const sourceOf = (path: string): ts.SourceFile => {
    const source = program.getSourceFile(fileOf(path))
    if (source === undefined) throw new Error(`${path} is not built: npm run build:lib`)
    return source
  }
  const exportsOf = (source: ts.SourceFile): ReadonlyArray<ts.Symbol> => {
    const symbol = checker.getSymbolAtLocation(source)
    return symbol === undefined ? [] : checker.getExportsOfModule(symbol)
  }
  const reach = new Set(modules.flatMap((path) => exportsOf(sourceOf(path)).map((symbol) => target(checker, symbol))))

  const dangling = program
    .getSourceFiles()
    .flatMap((source) => program.getSemanticDiagnostics(source))
    .filter(({ code }) => noSuchName.has(code))
    .map(
      ({ file, messageText }) => `${shown(file?.fileName ?? "")}: ${ts.flattenDiagnosticMessageText(messageText, " ")}`
    )

  const read = modules.map((path) => {
    const source = sourceOf(path)
    const names = exportsOf(source).map((symbol): PublicName => {
      const declared = target(checker, symbol)
      if (isModule(declared)) {
        const file = declared.declarations?.[0]?.getSourceFile().fileName ?? ""
        return { name: symbol.name, text: shown(file), isDocumented: true, tags: "module", hidden: [] }
      }
      const { declarations, hidden } = closure(checker, declared, reach)
      return {
        name: symbol.name,
        text: declarations.map(print).join("\n"),
        isDocumented: declarationsOf(declared).every(isDocumented),
        tags: new Map((declared.declarations ?? []).flatMap(tagsOf)),
        hidden
      }
    })
    const [comment = ""] = /^\/\*\*[^]*?\*\//.exec(source.text) ?? []
    return {
      path,
      isDocumented: comment !== "",
      tags: new Map(Array.from(comment.matchAll(/^ \* @(\w+) (.*)$/gm), ([, name = "", text = ""]) => [name, text])),
      names: names.sort((a, b) => (a.name < b.name ? -1 : 1))
    }
  })
  return { modules: read, dangling }
}

// -------------------------------------------------------------------------------------
// internal
// -------------------------------------------------------------------------------------

/** A module has no such export, a namespace has no such member; once with a guess, once without. */
const noSuchName = new Set([2305, 2614, 2694, 2724])

const shown = (file: string) => relative(library, file).replace(/\.d\.ts$/, "")

const isModule = (symbol: ts.Symbol) => (symbol.flags & ts.SymbolFlags.ValueModule) !== 0

/** What a name stands for, where it was imported or exported on. */
const target = (checker: ts.TypeChecker, symbol: ts.Symbol): ts.Symbol =>
  (symbol.flags & ts.SymbolFlags.Alias) === 0 ? symbol : checker.getAliasedSymbol(symbol)

const isPrivate = (node: ts.Node): boolean =>
  ts.canHaveModifiers(node) && (ts.getModifiers(node) ?? []).some(({ kind }) => kind === ts.SyntaxKind.PrivateKeyword)

/** The declarations of a name, those it refers to in its own file without exporting them, and the types nobody can import. */
const closure = (checker: ts.TypeChecker, symbol: ts.Symbol, reach: ReadonlySet<ts.Symbol>) => {
  const seen = new Set<ts.Symbol>([symbol])
  const declarations: Array<ts.Declaration> = []
  const hidden = new Set<string>()
  const visit = (node: ts.Node): void => {
    if (isPrivate(node)) return
    if (ts.isIdentifier(node)) refer(node)
    ts.forEachChild(node, visit)
  }
  const refer = (identifier: ts.Identifier) => {
    const found = checker.getSymbolAtLocation(identifier)
    if (found === undefined) return
    const named = target(checker, found)
    const declaration = named.declarations?.[0]
    if (declaration === undefined || seen.has(named) || isModule(named) || !isTopLevel(declaration)) return
    seen.add(named)
    if (isExported(declaration)) {
      if (!reach.has(named)) hidden.add(`${shown(declaration.getSourceFile().fileName)}.${named.name}`)
    } else add(named)
  }
  const add = (named: ts.Symbol): void => {
    for (const declaration of named.declarations ?? []) {
      declarations.push(declaration)
      visit(declaration)
    }
  }
  add(symbol)
  return { declarations, hidden: [...hidden].sort() }
}

/** A variable is declared in a list in a statement. */
const statementOf = (declaration: ts.Declaration): ts.Node =>
  ts.isVariableDeclaration(declaration) ? declaration.parent.parent : declaration

const isTopLevel = (declaration: ts.Declaration) => ts.isSourceFile(statementOf(declaration).parent)

const isExported = (declaration: ts.Declaration): boolean => {
  const statement = statementOf(declaration)
  return (
    ts.canHaveModifiers(statement) &&
    (ts.getModifiers(statement) ?? []).some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)
  )
}

/** Variables that are declared together have one. */
const commentsOf = (declaration: ts.Declaration): ReadonlyArray<ts.JSDoc> =>
  ts.getJSDocCommentsAndTags(statementOf(declaration)).filter(ts.isJSDoc)

const textOf = ({ comment }: ts.JSDoc | ts.JSDocTag): string => (ts.getTextOfJSDocComment(comment) ?? "").trim()

const isDocumented = (declaration: ts.Declaration): boolean =>
  commentsOf(declaration).some((comment) => textOf(comment) !== "")

/** The declarations of a name, without the type of a schema of that name: the schema documents both. */
const declarationsOf = ({ declarations = [], name }: ts.Symbol): ReadonlyArray<ts.Declaration> =>
  declarations.filter(
    (declaration) => !ts.isTypeAliasDeclaration(declaration) || declaration.type.getText() !== `typeof ${name}.Type`
  )

const tagsOf = (declaration: ts.Declaration): ReadonlyArray<readonly [string, string]> =>
  commentsOf(declaration).flatMap(({ tags = [] }) => tags.map((tag) => [tag.tagName.text, textOf(tag)] as const))

const printer = ts.createPrinter({ removeComments: true })

/** Members of unions come in whatever order the compiler met them in, and what is private is nobody's business. */
const ordered: ts.TransformerFactory<ts.Node> = (context) => {
  const visit = (node: ts.Node): ts.Node | undefined => {
    if (isPrivate(node) || ts.isJSDoc(node)) return undefined
    const changed = ts.visitEachChild(node, visit, context)
    if (!ts.isUnionTypeNode(changed)) return changed
    const source = node.getSourceFile()
    const text = (member: ts.TypeNode) => printer.printNode(ts.EmitHint.Unspecified, member, source)
    return ts.factory.createUnionTypeNode(
      changed.types
        .map((member) => [text(member), member] as const)
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([, member]) => member)
    )
  }
  return (node) => visit(node) ?? node
}

const print = (declaration: ts.Declaration): string => {
  const { transformed } = ts.transform<ts.Node>(declaration, [ordered])
  const [node = declaration] = transformed
  const text = printer.printNode(ts.EmitHint.Unspecified, node, declaration.getSourceFile())
  return (ts.isVariableDeclaration(declaration) ? `const ${text}` : text).replace(/^(?:export )?(?:declare )?/, "")
}
