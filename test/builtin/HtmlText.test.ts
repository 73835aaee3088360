import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "effect/FastCheck"
import * as HtmlText from "../../src/builtin/HtmlText.js"

const base = new URL("https://example.com/a/b")
const textOf = (html: string, limit = 50_000) => Effect.map(HtmlText.read(html, base, limit), ({ text }) => text)

describe("the text of a page", () => {
  it.effect.each([
    ["<p>a</p><p>b</p>", "a\n\nb"],
    ["a<br>b<br/>c", "a\nb\nc"],
    ["  a \n <b> b</b>  c ", "a b c"],
    ["<h2>T</h2>x<div>y</div>z", "T\n\nx\ny\nz"],
    ["<ol><li>a<li>b<ul><li>c</ul></ol>d", "1. a\n2. b\n  - c\n\nd"],
    ["<table><tr><th>a<th>b<tr><td>1<td>2</table>", "a | b\n1 | 2"],
    ["<pre>  a\n   b</pre>", "a\n   b"],
    ["x<pre>\n  a</pre>", "x\n\n\n  a"],
    [
      "<a href=/c>c</a> <a href='https://x.example/'>https://x.example/</a>",
      "c [https://example.com/c] https://x.example/"
    ],
    ["<a href='#x'>here</a> <a href='javascript:x()'>there</a> <a href=y><img></a>", "here there"],
    ["<script>a</script><style>b</style><nav>c<p>d</nav>e<p hidden>f<b>g</b></p>h", "eh"],
    ["<p hidden>a</p>b<div hidden><p>c</div>d", "bd"],
    ["&lt;b&gt; &amp;amp; &#x26; &eacute;", "<b> &amp; & \u00e9"],
    ["<!-- a --><![CDATA[b]]><?c?>d<unclosed", "d"],
    ["</p></div>a</b>", "a"],
    ["", ""]
  ] as ReadonlyArray<readonly [string, string]>)("of %j is %j", ([html, text]) =>
    Effect.gen(function* () {
      assert.strictEqual(yield* textOf(html), text)
    })
  )

  it.effect("ends at its limit, and says so", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* HtmlText.read("<p>abc</p>".repeat(100), base, 8), {
        text: "abc\n\nabc",
        isCut: true
      })
      assert.deepStrictEqual(yield* HtmlText.read("<p>abc</p>", base, 8), { text: "abc", isCut: false })
    })
  )

  it.effect("is not read below five hundred elements, so that its depth costs little", () =>
    Effect.gen(function* () {
      const { isCut, text } = yield* HtmlText.read(`before${"<b>".repeat(1_000_000)}after`, base, 50_000)
      assert.strictEqual(text, "before")
      assert.isTrue(isCut)
    })
  )

  it("is whatever the page is, and never more than is allowed", () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.constantFrom(
            "<b>",
            "</b>",
            "<p>",
            "</p>",
            "<ul>",
            "<li>",
            "</ul>",
            "<pre>",
            "<a href=x>",
            "</a>",
            "<td>",
            "<",
            ">",
            "&",
            "x y",
            "\n",
            "<script>",
            "</script>",
            "<nav hidden>",
            "</nav>"
          ),
          { maxLength: 40 }
        ),
        fc.integer({ min: 1, max: 40 }),
        async (pieces, limit) => {
          const text = await Effect.runPromise(textOf(pieces.join(""), limit))
          assert.isAtMost(text.length, limit)
        }
      )
    ))
})
