import { access, readdir, readFile } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from './markdown.ts'

const root = join(import.meta.dirname, '../..')

async function documents(): Promise<Map<string, ReturnType<typeof parse>>> {
  const inDocs = await readdir(join(root, 'docs'), { recursive: true })
  const names = ['README.md', 'CHANGELOG.md', ...inDocs.filter((it) => it.endsWith('.md')).map((it) => `docs/${it}`)]
  return new Map(
    await Promise.all(names.map(async (name) => [name, parse(await readFile(join(root, name), 'utf8'))] as const)),
  )
}

const isThere = (path: string): Promise<boolean> =>
  access(join(root, path)).then(
    () => true,
    () => false,
  )

test('every link of a document leads to an existing file, and to an existing heading', async () => {
  const all = await documents()
  const dead: string[] = []
  for (const [name, { links }] of all) {
    for (const link of links.filter((it) => !/^\w+:/.test(it))) {
      const [path = '', anchor] = link.split('#')
      const target = path === '' ? name : relative(root, join(root, dirname(name), path))
      const isDead = anchor === undefined ? !(await isThere(target)) : all.get(target)?.anchors.has(anchor) !== true
      if (isDead) dead.push(`${name}: ${link}`)
    }
  }
  expect(dead).toEqual([])
})

test('the files where a change begins declare the names that the architecture says', async () => {
  const page = await readFile(join(root, 'docs/architecture.md'), 'utf8')
  const rows = [...page.matchAll(/^\| .* \| `(\w+)` \| \[.*\]\(\.\.\/(.*)\) \|$/gm)]
  expect(rows.length).toBeGreaterThan(20)
  const lacking: string[] = []
  for (const [, name = '', path = ''] of rows) {
    const text = await readFile(join(root, path), 'utf8')
    if (!new RegExp(`^export (const|(async )?function|class|interface|type) ${name}\\b`, 'm').test(text))
      lacking.push(`${path}: ${name}`)
  }
  expect(lacking).toEqual([])
})

test('the README is short, and leads to every page of docs/', async () => {
  const all = await documents()
  expect((await readFile(join(root, 'README.md'), 'utf8')).split('\n').length).toBeLessThanOrEqual(150)
  const reached = new Set(['README.md'])
  // A page that is added to this set is visited, too.
  for (const name of reached) {
    for (const link of all.get(name)?.links ?? []) {
      const target = relative(root, join(root, dirname(name), link.split('#')[0] ?? ''))
      if (all.has(target)) reached.add(target)
    }
  }
  expect([...all.keys()].filter((name) => !reached.has(name))).toEqual([])
})

test('at least 25 pictures are shown, each with words for those who do not see it', async () => {
  const shown = [...(await documents()).values()].flatMap(({ pictures }) => pictures)
  expect(new Set(shown.map(({ path }) => basename(path))).size).toBeGreaterThanOrEqual(25)
  expect(shown.filter(({ alt }) => alt.trim() === '')).toEqual([])
})

test('a how-to shows the page or a lab file first, and requests in its last section', async () => {
  const all = await documents()
  const howTos = [
    'machines',
    'routers',
    'nat',
    'switches',
    'links-and-impairment',
    'hypervisors',
    'images',
    'several-machines',
  ]
  for (const name of [...howTos, 'gateway', 'tutorial']) {
    const { blocks = [], anchors = new Set<string>() } = all.get(`docs/${name}.md`) ?? {}
    const sections = [...anchors]
    const last = sections.indexOf('for-programs')
    const early = blocks.filter(
      ({ content, section }) => content.includes('curl ') && (last === -1 || sections.indexOf(section) < last),
    )
    expect(early.map(({ line }) => `docs/${name}.md:${line}`)).toEqual([])
  }
})

test('every file and folder of the source that a document names exists', async () => {
  const gone: string[] = []
  for (const [name, { code }] of await documents()) {
    // A changelog tells of what was there.
    if (name === 'CHANGELOG.md') continue
    for (const path of code.filter((it) => /^(src|runtime|test|scripts|examples|docs)\/[\w./-]*$/.test(it))) {
      if (!(await isThere(path))) gone.push(`${name}: ${path}`)
    }
  }
  expect(gone).toEqual([])
})
