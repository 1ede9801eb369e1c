import { readFile } from 'node:fs/promises'
import { parse, parseDocument, visit } from 'yaml'

// JavaScript, as bundle-browser.js, which uses it.

/** For esbuild: a lab file is a module with its text and what its map shows, so that the page need not read YAML. */
export const exampleLabs = {
  name: 'example-labs',
  setup(build) {
    build.onLoad({ filter: /\.lab\.yaml$/ }, async ({ path }) => ({
      contents: `export default ${JSON.stringify(exampleLab(withoutComments(await readFile(path, 'utf8'))))}`,
      loader: 'js',
    }))
  },
}

/** The text of a lab file, its name, its nodes with their places, and the names of nodes that are linked. */
export function exampleLab(text) {
  const { lab, templates = {}, nodes = {}, segments = {}, links = [] } = parse(text)
  const all = Object.entries({ ...nodes, ...segments }).map(([name, own]) => {
    const { kind, symbol, at } = { ...templates[own.is], ...own }
    return { name, kind, ...(symbol !== undefined && { symbol }), x: at[0], y: at[1] }
  })
  const members = Object.entries(segments).flatMap(([name, { members: list = [] }]) =>
    list.map((member) => [name, nodeOf(typeof member === 'string' ? member : member.end)]),
  )
  const ends = links.map((link) => (Array.isArray(link) ? link : link.ends).map(nodeOf))
  return { lab, text, nodes: all, links: [...ends, ...members] }
}

/** The page has a size: comments are left out, and checks that no task needs, which the page does not run. */
export function withoutComments(text) {
  const document = parseDocument(text)
  for (const at of [document, document.contents]) Object.assign(at, { comment: null, commentBefore: null })
  visit(document, {
    Node(_, node) {
      Object.assign(node, { comment: null, commentBefore: null, spaceBefore: false })
    },
  })
  if (!document.has('tasks')) document.delete('checks')
  return document.toString({ lineWidth: 0 })
}

/** `R1:eth0` is a port of R1. */
const nodeOf = (end) => end.split(':')[0]
