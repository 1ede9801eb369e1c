import { render } from 'slimdown-js'

/** Code in a text: whole blocks, and words. */
const code = /(```[\s\S]*?```|`[^`\n]*`)/

/**
 * The HTML of a Markdown text. It is not safe to be shown: only `Markdown` shows it. HTML in the text is text, `_` within a word does not emphasize,
 * and lines of one paragraph stay together.
 */
export const htmlOf = (text: string): string =>
  render(
    text
      .replaceAll('\r\n', '\n')
      .split(code)
      .map((part, index) => (index % 2 === 0 ? plain(part) : part))
      .join(''),
  )

const plain = (text: string): string =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll(/(?<=\w)_(?=\w)/g, '&#95;')
    .replaceAll(/(?<=\S)[ \t]*\n(?=[^\s#>*+\-|\d])/g, ' ')

/** The address of a link that may be followed: of the web, or for mail. */
export function safeAddress(address: string | null): string | undefined {
  if (address === null || !URL.canParse(address)) return undefined
  const { protocol, href } = new URL(address)
  return ['https:', 'http:', 'mailto:'].includes(protocol) ? href : undefined
}
