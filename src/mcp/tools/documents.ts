import { Type } from '@sinclair/typebox'
import { badRequest } from '../../lib/errors/api-error.ts'
import { kinds } from '../../model/kinds/index.ts'
import type { KindDescriptor } from '../../model/kinds/kind.ts'
import { named } from '../parts/answer-text.ts'
import { type Tool, type ToolContext, tool } from '../parts/tool.ts'

/** The file of the build with the pages and the example labs, as JSON: scripts/assistant-pages.js makes it. */
const file = 'assistant-pages.json'
const kindsPage = 'kinds'
/** Most characters of a page in one answer of the tool. */
const maxPiece = 16_000
const scheme = 'patchbay://docs/'

/** A document for assistants. */
export interface Document {
  readonly name: string
  readonly uri: string
  readonly media: string
  readonly text: string
}

/** All documents: pages, the kinds of node, and example labs. */
export async function documents({ asset }: Pick<ToolContext, 'asset'>): Promise<Document[]> {
  const pages = JSON.parse((await asset(file)) ?? '{}') as Readonly<Record<string, string>>
  return Object.entries({ ...pages, [kindsPage]: kindsText() }).map(([name, text]) => ({
    name,
    uri: scheme + name,
    media: name.startsWith('examples/') ? 'application/yaml' : 'text/markdown',
    text,
  }))
}

const list: readonly KindDescriptor[] = kinds

/** The kinds of node, one a line. */
const kindsText = (): string =>
  [
    '# Kinds of node',
    ...list.map(({ name, title, consoles, image }) => {
      const console = consoles.length === 0 ? 'no console' : `console: ${consoles.join(', ')}`
      return `* ${name}: ${title}; ${console}${image === undefined ? '' : '; needs an image'}. Its keys: schema with part: ${name}`
    }),
  ].join('\n')

export const documentTools: readonly Tool[] = [
  tool({
    name: 'docs',
    title: 'Read the documentation',
    description:
      'Reads a page: "lab-file" says how lab files are written, "kinds" which nodes there are, "examples/..." are whole lab files. Without a page it lists them.',
    role: 'read',
    input: Type.Object(
      {
        page: Type.Optional(Type.String({ maxLength: 100, description: 'Name of the page' })),
        from: Type.Optional(Type.Integer({ minimum: 0, maximum: 1 << 24, default: 0, description: 'First character' })),
      },
      { additionalProperties: false },
    ),
    async run({ page, from = 0 }, context) {
      const all = await documents(context)
      const pages = all.map(({ name, text }) => ({ page: name, characters: text.length }))
      if (page === undefined) return { verdict: `${all.length} pages`, data: { pages } }
      const found = all.find(({ name, uri }) => name === page || uri === page)
      if (found === undefined)
        throw badRequest(`page: there is no ${named(page)}; the pages are ${all.map(({ name }) => name).join(', ')}`)
      const end = Math.min(from + maxPiece, found.text.length)
      const left = found.text.length - end
      return {
        verdict: `The page ${found.name}, characters ${from} to ${end} of ${found.text.length}`,
        ...(left > 0 && { not_done: [`${left} characters are left: from: ${end} reads on`] }),
        data: { text: found.text.slice(from, end) },
      }
    },
  }),
]
