/** A fenced block of a document. */
export interface Block {
  /** The word after the fence: sh, console, text ... */
  readonly language: string
  /** Its lines, joined. */
  readonly content: string
  /** The words of the comment right before it, such as `not run: needs a screen`. */
  readonly mark: string | undefined
  /** Anchor of the section that it is in. */
  readonly section: string
  /** Line of its fence, counted from 1. */
  readonly line: number
}

export interface Document {
  readonly blocks: readonly Block[]
  /** Anchors of its headings, as GitHub makes them. */
  readonly anchors: ReadonlySet<string>
  /** Targets of its links and pictures. */
  readonly links: readonly string[]
  /** Pictures, with the words that stand for them. */
  readonly pictures: readonly { readonly path: string; readonly alt: string }[]
  /** Words in backquotes in its text. */
  readonly code: readonly string[]
  /** `PAGE#SECTION` whose blocks are run first. */
  readonly continues: string | undefined
}

const comment = /^<!-- (.*) -->$/
const fence = /^```(\S*)$/
const heading = /^#{1,6} (.*)$/

/** Reads a document of ours: fences at the beginning of a line, comments of one line. */
export function parse(text: string): Document {
  const blocks: Block[] = []
  const anchors = new Set<string>()
  const prose: string[] = []
  let continues: string | undefined
  let section = ''
  let before = ''
  const lines = text.split('\n')
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? ''
    const [, language] = fence.exec(line) ?? []
    if (language === undefined) {
      const title = heading.exec(line)?.[1]
      if (title !== undefined) {
        section = uniqueAnchor(title, anchors)
        anchors.add(section)
      }
      continues ??= /^continues: (\S+)$/.exec(comment.exec(line)?.[1] ?? '')?.[1]
      before = line
      prose.push(line)
      continue
    }
    const end = lines.indexOf('```', at + 1)
    if (end < 0) throw new Error(`line ${at + 1}: the block has no end`)
    const content = lines.slice(at + 1, end).join('\n')
    blocks.push({ language, content, mark: comment.exec(before)?.[1], section, line: at + 1 })
    at = end
    before = ''
  }
  const written = prose.join('\n')
  return { blocks, anchors, links: linksIn(written), pictures: picturesIn(written), code: codeIn(written), continues }
}

/** As GitHub makes it: lower case, without punctuation, hyphens for blanks; a number when the same is there already. */
function uniqueAnchor(title: string, taken: ReadonlySet<string>): string {
  const plain = title.toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, '')
  const anchor = plain.replaceAll(' ', '-')
  for (let number = 0; ; number++) {
    const name = number === 0 ? anchor : `${anchor}-${number}`
    if (!taken.has(name)) return name
  }
}

function linksIn(prose: string): string[] {
  const withoutCode = prose.replace(/`[^`\n]*`/g, '')
  return [...withoutCode.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target)
}

function picturesIn(prose: string): Document['pictures'] {
  return [...prose.matchAll(/!\[([^\]]*)\]\(([^)\s]+)\)/g)].map(([, alt = '', path = '']) => ({ path, alt }))
}

const codeIn = (prose: string): string[] => [...prose.matchAll(/`([^`\n]+)`/g)].map(([, words = '']) => words)
