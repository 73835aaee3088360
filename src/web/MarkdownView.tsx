/**
 * Markdown as elements: the tokens of `marked` become nodes, and nothing becomes markup. Raw HTML is shown as text, images as
 * links, and links lead to web addresses only, which are shown in full.
 */
import { Lexer, type MarkedToken, type Token } from "marked"
import type { ComponentChildren } from "preact"
import { useMemo } from "preact/hooks"

export const MarkdownView = ({ text }: { readonly text: string }) => {
  const tokens = useMemo(() => tokensOf(text), [text])
  return <div class="markdown">{tokens === undefined ? <p class="pre">{text}</p> : blocks(tokens)}</div>
}

/** A web address as a link that shows where it leads; any other text as itself. */
export const WebLink = ({ children, href }: { readonly href: string; readonly children?: ComponentChildren }) => {
  const address = webAddress(href)
  if (address === undefined) return <span>{children ?? href}</span>
  return (
    <a href={address} target="_blank" rel="noopener noreferrer nofollow">
      {children ?? href}
    </a>
  )
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Longer texts are shown as they are: lexing them would hold up the page. */
const longest = 200_000

const tokensOf = (text: string): ReadonlyArray<Token> | undefined => {
  if (text.length > longest) return undefined
  try {
    return Lexer.lex(text)
  } catch {
    return undefined
  }
}

const webAddress = (href: string): string | undefined => {
  try {
    const url = new URL(href)
    return url.protocol === "https:" || url.protocol === "http:" ? url.href : undefined
  } catch {
    return undefined
  }
}

const blocks = (tokens: ReadonlyArray<Token>): ComponentChildren => tokens.map((token, at) => block(token, at))

const block = (given: Token, at: number): ComponentChildren => {
  // The union of `marked` has a member of any shape, which hides the others.
  const token = given as MarkedToken
  switch (token.type) {
    case "space":
    case "def":
      return undefined
    case "heading": {
      // The page has its own first two levels.
      const level = Math.min(6, token.depth + 2)
      return (
        <p key={at} role="heading" aria-level={level} class={`h h${token.depth}`}>
          {inline(token.tokens)}
        </p>
      )
    }
    case "paragraph":
      return <p key={at}>{inline(token.tokens)}</p>
    case "blockquote":
      return <blockquote key={at}>{blocks(token.tokens)}</blockquote>
    case "code":
      return (
        <pre key={at} tabIndex={0} role="region" aria-label={`Code ${token.lang ?? ""}`.trim()}>
          <code>{token.text}</code>
        </pre>
      )
    case "hr":
      return <hr key={at} />
    case "list": {
      const items = token.items.map((item, index) => (
        <li key={index}>
          {item.task && <span aria-label={item.checked ? "done" : "open"}>{item.checked ? "☑ " : "☐ "}</span>}
          {blocks(item.tokens)}
        </li>
      ))
      return token.ordered ? (
        <ol key={at} start={token.start === "" ? 1 : token.start}>
          {items}
        </ol>
      ) : (
        <ul key={at}>{items}</ul>
      )
    }
    case "table":
      return (
        <div key={at} class="scroll" tabIndex={0} role="region" aria-label="Table">
          <table>
            <thead>
              <tr>
                {token.header.map((cell, index) => (
                  <th key={index}>{inline(cell.tokens)}</th>
                ))}
              </tr>
            </thead>
            <tbody>
              {token.rows.map((row, index) => (
                <tr key={index}>
                  {row.map((cell, column) => (
                    <td key={column}>{inline(cell.tokens)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )
    case "text":
      return token.tokens === undefined ? token.text : inline(token.tokens)
    case "html":
      return (
        <p key={at} class="pre">
          {token.raw}
        </p>
      )
    default:
      return inlineOne(token, at)
  }
}

const inline = (tokens: ReadonlyArray<Token>): ComponentChildren => tokens.map((token, at) => inlineOne(token, at))

const inlineOne = (given: Token, at: number): ComponentChildren => {
  const token = given as MarkedToken
  switch (token.type) {
    case "strong":
      return <strong key={at}>{inline(token.tokens)}</strong>
    case "em":
      return <em key={at}>{inline(token.tokens)}</em>
    case "del":
      return <del key={at}>{inline(token.tokens)}</del>
    case "codespan":
      return <code key={at}>{token.text}</code>
    case "br":
      return <br key={at} />
    case "link":
      return linked(token.href, token.text, at, inline(token.tokens))
    case "image":
      return linked(token.href, "", at, `image: ${token.text}`)
    case "text":
    case "escape":
      return token.text
    default:
      return token.raw
  }
}

/** Words that are not the address itself are followed by it. */
const linked = (href: string, text: string, at: number, children: ComponentChildren): ComponentChildren => {
  const address = webAddress(href)
  if (address === undefined) return <span key={at}>{[children, ` (${href})`]}</span>
  const isPlain = text === href || text === address || `${text}/` === address
  return (
    <span key={at}>
      <WebLink href={address}>{children}</WebLink>
      {isPlain ? "" : ` (${address})`}
    </span>
  )
}
