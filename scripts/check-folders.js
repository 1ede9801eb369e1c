import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

// JavaScript, so that the lint needs nothing but what a checkout has. Fails when a file imports from a layer above its own, also
// types; and when two folders import each other's values, by any way round.

/** The layers, the lowest first. Those of `runtime/node` have parts that are lower than the rest of their folder. */
const layers = {
  src: ['lib', 'model', 'host-agent.ts', 'compute', 'fleet', 'labs', 'server', 'endpoints', 'app.ts'],
  'runtime/node': [
    ...['os', 'dataplane/bpf', 'dataplane/filters', 'keeper/protocol', 'dataplane', 'keeper', 'engine', 'drivers'],
    ...['service', 'cli', 'main.ts'],
  ],
}

/** Folders of `src` beside its layers: what each imports, and what imports it. The programs of `runtime` may import all. */
const beside = {
  labfile: { imports: ['lib', 'model'], users: ['importers', 'labs', 'server', 'endpoints', 'app.ts'] },
  importers: { imports: ['lib', 'model', 'labfile'], users: ['labs', 'server', 'endpoints', 'app.ts'] },
  exporters: { imports: ['lib', 'model', 'labfile'], users: [] },
  packets: { imports: ['lib'], users: ['endpoints'] },
  iso: { imports: ['lib'], users: ['labs'] },
  client: { imports: ['lib', 'model', 'compute'], users: [] },
  mcp: { imports: ['lib', 'model', 'labfile', 'importers', 'packets', 'client'], users: ['endpoints'] },
}

const root = join(import.meta.dirname, '..')
const files = ['src', 'runtime'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true }).map((name) => join(folder, name)),
)
const sources = new Set(files.filter((name) => /\.tsx?$/.test(name)))

/** Imports as the formatter writes them: a statement begins a line, and says at once when it is for types alone. */
const statements =
  /^(?:import|export)(?<types> type)?\b[^'"`;=]*?(?:\bfrom )?'(?<path>\.[^']+)'|\bimport\('(?<later>\.[^']+)'\)/gm

/** Every import of a source by another one: `{ from, to, isType }`. */
const imports = [...sources].flatMap((from) =>
  [...readFileSync(join(root, from), 'utf8').matchAll(statements)]
    .map(({ groups: { types, path, later } }) => ({
      from,
      to: join(dirname(from), path ?? later),
      isType: types !== undefined,
    }))
    .filter(({ to }) => sources.has(to)),
)
const sayImport = ({ from, to }) => `${from} imports ${to}`

/** By folder: the folders whose values it imports, each with one import that shows it. */
const folders = new Map()
for (const found of imports) {
  const [from, to] = [dirname(found.from), dirname(found.to)]
  if (found.isType || from === to) continue
  if (!folders.has(from)) folders.set(from, new Map())
  if (!folders.get(from).has(to)) folders.get(from).set(to, found)
}

const loops = []
const done = new Set()
const visit = (folder, way) => {
  const at = way.indexOf(folder)
  if (at >= 0) return void loops.push([...way.slice(at), folder])
  if (done.has(folder)) return
  for (const next of folders.get(folder)?.keys() ?? []) visit(next, [...way, folder])
  done.add(folder)
}
for (const folder of folders.keys()) visit(folder, [])

/** Files that are in no layer, and imports that go up. */
const faults = new Set()
for (const [tree, names] of Object.entries(layers)) {
  const longestFirst = [...names, ...(tree === 'src' ? Object.keys(beside) : [])].sort((a, b) => b.length - a.length)
  const layerOf = (file) => longestFirst.find((name) => `${file}/`.startsWith(`${tree}/${name}/`))
  for (const file of sources)
    if (file.startsWith(`${tree}/`) && layerOf(file) === undefined) faults.add(`${file} is in no layer of ${tree}`)
  for (const found of imports) {
    const [from, to] = [layerOf(found.from), layerOf(found.to)]
    if (from === undefined || to === undefined || from === to) continue
    const isAllowed =
      beside[from]?.imports.includes(to) ?? beside[to]?.users.includes(from) ?? names.indexOf(to) < names.indexOf(from)
    if (!isAllowed) faults.add(`${from} may not import from ${to}: ${sayImport(found)}`)
  }
}
for (const fault of faults) console.error(fault)

// An import that goes up makes loops of its own, of which none is the cause.
const shown = faults.size > 0 ? [] : loops.sort((a, b) => a.length - b.length).slice(0, 5)
for (const loop of shown) {
  console.error(`Folders that import each other: ${loop.join(' -> ')}`)
  for (const [index, to] of loop.slice(1).entries()) console.error(`  ${sayImport(folders.get(loop[index]).get(to))}`)
}
process.exitCode = loops.length + faults.size === 0 ? 0 : 1
