import * as NodeContext from "@effect/platform-node/NodeContext"
import * as FileSystem from "@effect/platform/FileSystem"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import * as FastCheck from "fast-check"
import { execFileSync } from "node:child_process"
import * as Digest from "../../src/core/Digest.js"
import * as MediaType from "../../src/core/MediaType.js"
import * as Redaction from "../../src/core/Redaction.js"
import * as Input from "../../src/inbox/Input.js"
import * as InputTaking from "../../src/inbox/InputTaking.js"
import * as FileSample from "../kit/FileSample.js"

const take = (...parts: ReadonlyArray<Input.Part>) => InputTaking.take(parts, Input.defaults, Redaction.shapesOnly)

/** What is refused, in a sentence; or as what the first file is taken. */
const outcome = (...parts: ReadonlyArray<Input.Part>) =>
  Effect.map(Effect.either(take(...parts)), (taken) => {
    if (Either.isLeft(taken)) return `${taken.left.problem}: ${taken.left.message}`
    const file = taken.right.draft.parts?.find((part) => part.type === "file")
    return file?.type === "file" ? file.file.mediaType : taken.right.draft.text
  })

const { gif, jpeg, pdf, png, text } = FileSample
const heic = Uint8Array.from(Buffer.from("\x00\x00\x00\x18ftypheic\x00\xff", "latin1"))
const changed = (bytes: Uint8Array, at: number, byte: number) => bytes.map((old, index) => (index === at ? byte : old))

describe("a file", () => {
  it.effect("is what its bytes are, whatever it is called", () =>
    Effect.gen(function* () {
      for (const [mediaType, name, bytes] of FileSample.all) {
        assert.strictEqual(yield* outcome(Input.fromBytes(bytes)), mediaType)
        assert.strictEqual(yield* outcome(Input.fromBytes(bytes, { name, mediaType })), mediaType)
        assert.strictEqual(yield* outcome(Input.fromBytes(bytes, { name: "notes.txt" })), mediaType)
        assert.strictEqual(yield* outcome(Input.fromBytes(bytes, { mediaType: "application/octet-stream" })), mediaType)
        assert.strictEqual(yield* outcome(Input.fromBytes(bytes, { mediaType: "" })), mediaType)
      }
      assert.strictEqual(yield* outcome(Input.image(jpeg(), { mediaType: "image/JPG" })), "image/jpeg")
      assert.strictEqual(yield* outcome(Input.image(png(), { mediaType: "image/*" })), "image/png")
      // Pictures are often called after what they were before.
      assert.strictEqual(yield* outcome(Input.image(jpeg(), { name: "shot.png" })), "image/jpeg")
    })
  )

  it.effect("of words is text, by its name", () =>
    Effect.gen(function* () {
      const names: ReadonlyArray<readonly [string | undefined, string]> = [
        [undefined, "text/plain"],
        ["a.md", "text/markdown"],
        ["a.JSON", "application/json"],
        ["Makefile", "text/plain"],
        ["a.ts", "text/plain"]
      ]
      for (const [name, mediaType] of names) {
        assert.strictEqual(yield* outcome(Input.fromBytes(text("grün"), { name })), mediaType)
      }
    })
  )

  it.effect("that is not what it is said to be is refused in a sentence that names it", () =>
    Effect.gen(function* () {
      const cases: ReadonlyArray<readonly [Input.Part, RegExp]> = [
        [
          Input.fromBytes(png(), { name: "a.jpg", mediaType: "image/jpeg" }),
          /^wrongType: a\.jpg is said to be image\/jpeg, and its bytes are image\/png\.$/
        ],
        [Input.fromBytes(pdf(), { mediaType: "text/plain" }), /^wrongType: file is said to be text\/plain/],
        [
          Input.fromBytes(text("<html>"), { name: "shot.png" }),
          /^wrongType: shot\.png is called image\/png, and its bytes are text\.$/
        ],
        [Input.fromBytes(heic, { name: "a.pdf" }), /^wrongType: a\.pdf is called application\/pdf/],
        [Input.fromBytes(heic, { mediaType: "image/png" }), /^wrongType: .*no type that is known/],
        [Input.image(pdf(), { name: "p.pdf" }), /^wrongType: p\.pdf is to be an image/],
        [Input.image(text("hello")), /^wrongType: image is to be an image/],
        [Input.fromBytes(heic, { name: "photo.heic" }), /^wrongType: photo\.heic has an unknown type\. Name its type/],
        [Input.fromBytes(heic, { mediaType: "text/plain" }), /^wrongType: file is said to be text\/plain/],
        [Input.fromBytes(heic, { name: "a.txt" }), /^wrongType: a\.txt has an unknown type/],
        [Input.fromBytes(heic, { name: "a.bin", mediaType: "" }), /^wrongType: a\.bin has an unknown type/],
        [Input.fromBytes(text("x"), { mediaType: "image/*" }), /^wrongType: file is to be an image/],
        [Input.fromBytes(pdf(), { mediaType: "image/*" }), /^wrongType: file is to be an image/],
        [Input.fromBytes(new Uint8Array(), { name: "a.png" }), /^unreadable: a\.png cannot be read: it is empty\.$/],
        [
          Input.fromBytes(new Uint8Array(20_000_001), { name: "a.bin" }),
          /^tooLarge: a\.bin is larger than 20 MB, and is not taken\.$/
        ]
      ]
      for (const [part, says] of cases) assert.match(yield* outcome("Look", part), says)
    })
  )

  it.effect("of a type that nobody here knows is taken when it is named", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* outcome(Input.fromBytes(heic, { mediaType: "image/heic" })), "image/heic")
      assert.strictEqual(yield* outcome(Input.fromBytes(heic, { mediaType: "audio/wav; rate=8000" })), "audio/wav")
    })
  )

  it.effect("that is damaged or cut off anywhere is refused, and never crashes", () =>
    Effect.gen(function* () {
      for (const [mediaType, , bytes] of FileSample.all) {
        // Whatever is missing at its end. A GIF may lack its last byte, and PDFs end with a line break.
        const least = mediaType === "image/gif" ? 14 : mediaType === "application/pdf" ? bytes.length - 1 : bytes.length
        for (let length = 1; length < least; length++) {
          assert.match(
            yield* outcome(Input.fromBytes(bytes.slice(0, length), { mediaType })),
            /^(?:unreadable|wrongType): /,
            `${mediaType} ${length}`
          )
        }
      }
      assert.match(yield* outcome(Input.image(changed(png(), 19, 0))), /it has no size/)
      assert.match(yield* outcome(Input.image(changed(jpeg(), 8, 0))), /it is damaged/)
      assert.match(yield* outcome(Input.image(gif(0))), /it has no size/)
      FastCheck.assert(
        FastCheck.property(
          FastCheck.constantFrom(...FileSample.all),
          FastCheck.array(FastCheck.tuple(FastCheck.nat(80), FastCheck.nat(255)), { maxLength: 4 }),
          ([, , bytes], changes) => {
            const other = bytes.slice()
            for (const [at, byte] of changes) if (at < other.length) other[at] = byte
            MediaType.of(other)
          }
        )
      )
    })
  )

  it("tells its size in pixels", () => {
    const sizes = FileSample.all.map(([, , bytes]) => [MediaType.of(bytes)?.width, MediaType.of(bytes)?.height])
    assert.deepStrictEqual(sizes, [
      [2, 2],
      [3, 4],
      [5, 6],
      [7, 8],
      [undefined, undefined]
    ])
  })

  it.effect("has a name in one line, without its directory and what it hides", () =>
    Effect.gen(function* () {
      const names: ReadonlyArray<readonly [string | undefined, string]> = [
        ["/home/ann/secret/shot.png", "shot.png"],
        ["C:\\ann\\shot.png", "shot.png"],
        ["a\nb\u001b[31m\u202e.png", "a b [31m .png"],
        ["  ", "image"],
        [undefined, "image"],
        ["../..", ".."]
      ]
      for (const [name, shown] of names) {
        const { draft } = yield* take(Input.image(png(), { name }))
        assert.include(draft.parts?.[0], { type: "file" })
        assert.strictEqual(draft.parts?.[0]?.type === "file" ? draft.parts[0].file.name : "", shown)
      }
      const cleaned = (name: string) =>
        Effect.map(take(Input.image(png(), { name })), ({ draft: { parts = [] } }) =>
          parts.map((part) => (part.type === "file" ? part.file.name : ""))
        )
      const most = `${"x".repeat(124)}.png`
      assert.deepStrictEqual(yield* cleaned(most), [most])
      assert.deepStrictEqual(yield* cleaned(`x${most}`), [`${"x".repeat(80)}…${"x".repeat(36)}.png`])
    })
  )

  it.effect("of words has no secrets, and its digest is of what is kept", () =>
    Effect.gen(function* () {
      const redactor = Redaction.make(["hunter2-hunter2"])
      const given = Input.fromBytes(text("the password is hunter2-hunter2."), { name: "hunter2-hunter2.txt" })
      const { contents, draft } = yield* InputTaking.take([given], Input.defaults, redactor)
      const [content] = contents
      assert.notInclude(new TextDecoder().decode(content?.bytes), "hunter2")
      assert.notInclude(JSON.stringify(draft.parts), "hunter2")
      assert.strictEqual(content?.sha256, Digest.sha256(content?.bytes ?? ""))
    })
  )
})

describe("a message", () => {
  it.effect("keeps words and files in their order, and each content once", () =>
    Effect.gen(function* () {
      const bytes = png()
      const { contents, draft } = yield* take(
        "one",
        Input.image(bytes),
        { type: "text", text: "two" },
        " ",
        Input.fromBytes(bytes)
      )
      bytes.fill(0)
      assert.deepStrictEqual(
        draft.parts?.map((part) => (part.type === "text" ? part.text : part.file.name)),
        ["one", "image", "two", "file"]
      )
      assert.lengthOf(contents, 1)
      assert.strictEqual(Digest.sha256(contents[0]?.bytes ?? ""), contents[0]?.sha256)
      assert.strictEqual(draft.text, "one\ntwo\n ")
    })
  )

  it.effect("without files is words, whatever it is made of", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* take("one", { type: "text", text: "two" }), {
        draft: { text: "one\ntwo" },
        contents: []
      })
      assert.deepStrictEqual(yield* take(), { draft: { text: "" }, contents: [] })
    })
  )

  it.effect("has not too many files, and not too much in them", () =>
    Effect.gen(function* () {
      const limits = { inputFiles: 2, inputFileBytes: 1_000, inputTotalBytes: 1_500 }
      const some = Input.fromBytes(text("x".repeat(800)), { name: "a.txt" })
      const said = (...parts: ReadonlyArray<Input.Part>) =>
        Effect.map(Effect.flip(InputTaking.take(parts, limits, Redaction.shapesOnly)), ({ message }) => message)
      const most = Input.fromBytes(text("x".repeat(1_000)))
      const rest = Input.fromBytes(text("x".repeat(500)))
      const { contents } = yield* InputTaking.take(["Look", most, rest], limits, Redaction.shapesOnly)
      assert.deepStrictEqual(
        contents.map(({ bytes }) => bytes.length),
        [1_000, 500]
      )
      assert.strictEqual(yield* said(some, some, some), "The message has 3 files; 2 are taken at once.")
      assert.strictEqual(
        yield* said(some, some),
        "The files of the message have more than 1.5 kB together. Send some of them in another message."
      )
      assert.strictEqual(
        yield* said(Input.fromBytes(text("x".repeat(1_001)), { name: "b.txt" })),
        "b.txt is larger than 1 kB, and is not taken."
      )
    })
  )

  it("comes as JSON from a client", () => {
    const input: Input.Input = ["Look", Input.image(png(), { name: "a.png" })]
    const json: unknown = JSON.parse(JSON.stringify(Schema.encodeSync(Input.Input)(input)))
    assert.deepStrictEqual(Schema.decodeUnknownSync(Input.Input)(json), input)
    assert.throws(() => Schema.decodeUnknownSync(Input.Input)([{ type: "image", bytes: "*" }]))
  })
})

describe("a model", () => {
  it.effect("says which file it does not take, and what it takes", () =>
    Effect.gen(function* () {
      const { draft } = yield* take(
        "Look",
        Input.image(png(), { name: "a.png" }),
        Input.fromBytes(pdf(), { name: "b" })
      )
      const words = yield* take("Look")
      const table: ReadonlyArray<readonly [ReadonlyArray<string> | undefined, string | undefined]> = [
        [undefined, undefined],
        [["image/*", "application/pdf"], undefined],
        [
          ["image/*"],
          "The model m/m takes no application/pdf (b). It takes image/*; choose another model, or convert the file."
        ],
        [
          [],
          "The model m/m takes no image/png (a.png). It takes words only; choose another model, or convert the file."
        ]
      ]
      for (const [inputs, reason] of table) {
        const refused = InputTaking.notTaken(draft, { id: "m/m", inputs })
        assert.strictEqual(refused?.message, reason)
        if (refused !== undefined) assert.strictEqual(refused.problem, "notTaken")
        assert.isUndefined(InputTaking.notTaken(words.draft, { id: "m/m", inputs }))
      }
    })
  )
})

describe("reading a file", () => {
  it.scopedLive("takes a regular file, and says of everything else why not", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const directory = yield* fs.makeTempDirectoryScoped()
      yield* fs.writeFile(`${directory}/shot.png`, png())
      yield* fs.symlink(`${directory}/shot.png`, `${directory}/link.png`)
      execFileSync("mkfifo", [`${directory}/pipe`])
      assert.deepStrictEqual(yield* Input.read(`${directory}/shot.png`), {
        type: "file",
        bytes: png(),
        name: "shot.png",
        mediaType: undefined
      })
      assert.deepInclude(yield* Input.read(`${directory}/link.png`, { name: "other" }), { name: "other" })
      const said = (path: string, maxBytes?: number) =>
        Effect.map(Effect.flip(Input.read(path, maxBytes === undefined ? {} : { maxBytes })), ({ message }) => message)
      assert.strictEqual(yield* said(`${directory}/none.png`), "none.png cannot be read: there is no such file.")
      assert.strictEqual(
        yield* said(directory, 5),
        `${directory.split("/").at(-1)} is a directory, and is not taken. Name a file in it.`
      )
      assert.strictEqual(
        yield* said(`${directory}/pipe`),
        "pipe is a pipe, and is not taken. Write its output into a file, and attach that file."
      )
      assert.strictEqual(yield* said("/dev/zero"), "zero is a device, and is not taken.")
      yield* fs.symlink(`${directory}/circle`, `${directory}/circle`)
      assert.strictEqual(
        yield* said(`${directory}/circle`),
        "circle cannot be read: its links lead in a circle; name the file itself."
      )
      assert.strictEqual(yield* said(`${directory}/shot.png/a`), "a cannot be read: there is no such file.")
      assert.match(
        yield* said(`${directory}/${"x".repeat(300)}`),
        /^x{80}…x{40} cannot be read: its name is too long\.$/
      )
      assert.strictEqual(yield* said(""), "The name of a file is empty. Name one that is there.")
      const problems = yield* Effect.forEach([`${directory}/none`, `${directory}/pipe`, "/dev/zero", ""], (path) =>
        Effect.map(Effect.flip(Input.read(path)), ({ problem }) => problem)
      )
      assert.deepStrictEqual([...new Set(problems)], ["unreadable"])
      const large = yield* Effect.flip(Input.read(`${directory}/shot.png`, { maxBytes: 10 }))
      assert.strictEqual(large.problem, "tooLarge")
      assert.strictEqual(
        yield* said(`${directory}/shot.png`, 10),
        "shot.png is larger than 10 bytes, and is not taken."
      )
    }).pipe(Effect.provide(NodeContext.layer))
  )
})
