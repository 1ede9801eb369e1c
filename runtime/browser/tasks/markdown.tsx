import { type ComponentChildren, Fragment, h } from 'preact'
import { useMemo } from 'preact/hooks'
import { htmlOf, safeAddress } from './markdown-html.ts'

/** What a text may have, and as what it is shown: a heading in it is below that of its part of the page. Of everything else only the text is shown. */
const elements: Readonly<Record<string, string>> = {
  ...Object.fromEntries(['h1', 'h2', 'h3', 'h4', 'h5', 'h6'].map((heading) => [heading, 'h4'])),
  ...Object.fromEntries(
    ['p', 'ul', 'ol', 'li', 'pre', 'code', 'strong', 'em', 'del', 'blockquote', 'hr', 'br'].map((name) => [name, name]),
  ),
  ...Object.fromEntries(['table', 'thead', 'tbody', 'tr', 'th', 'td'].map((name) => [name, name])),
}

/** A Markdown text that others have written. It is shown without its HTML, pictures and attributes, and loads nothing. */
export function Markdown({ text }: { text: string }) {
  const content = useMemo(() => {
    // Such a document runs no scripts and loads no pictures.
    const { body } = new DOMParser().parseFromString(htmlOf(text), 'text/html')
    return [...body.childNodes].map(shown)
  }, [text])
  return (
    <div class="markdown" dir="auto">
      {content}
    </div>
  )
}

function shown(node: Node): ComponentChildren {
  if (node.nodeType === Node.TEXT_NODE) return node.textContent
  if (!(node instanceof Element)) return null
  const { localName } = node
  if (localName === 'img') return node.getAttribute('alt')
  const children = [...node.childNodes].map(shown)
  if (localName === 'a') {
    const href = safeAddress(node.getAttribute('href'))
    if (href === undefined) return h(Fragment, null, children)
    return (
      <a href={href} target="_blank" rel="noreferrer noopener">
        {children}
      </a>
    )
  }
  const name = elements[localName]
  return name === undefined ? h(Fragment, null, children) : h(name, null, children)
}
