import { type Diagnostics, didYouMean, enough, quoted } from './diagnostics.ts'
import { kindOfWord } from './schema.ts'
import { at, type Entry, type MapValue, type Value } from './values.ts'

/** Longest chain of templates behind a node. */
const maxTemplates = 4
/** Most values that all nodes together take over from templates; a long text counts as several. */
const maxTaken = 300_000
/** Characters of a text that count as one value. */
const textOfValue = 100

/** Nodes with what they take over from templates. */
export class TemplateReader {
  readonly #section: MapValue | undefined
  readonly #diagnostics: Diagnostics
  /** Templates that some node takes over. */
  readonly used = new Set<string>()
  readonly #partial = new WeakSet<MapValue>()
  readonly #sizes = new Map<MapValue, number>()
  #taken = 0

  constructor(section: Value | undefined, diagnostics: Diagnostics) {
    this.#diagnostics = diagnostics
    if (section?.type === 'map') this.#section = section
    else if (section !== undefined && !(section.type === 'scalar' && section.value === null))
      diagnostics.add(section.at, 'expected a map of templates: { NAME: { kind: ... } }')
  }

  get names(): string[] {
    return [...(this.#section?.entries.keys() ?? [])]
  }

  template(name: string): MapValue | undefined {
    const found = at(this.#section, name)
    return found?.type === 'map' ? found : undefined
  }

  /** The node with the keys of its templates, without `is`. Its own keys win; `labels` and `day0.files` merge by key. */
  merged(node: MapValue): MapValue {
    const entries = new Map(node.entries)
    const seen: string[] = []
    let isWhole = true
    let next = entries.get('is')
    entries.delete('is')
    while (next !== undefined) {
      const name = this.#nameIn(next, seen)
      if (name === undefined) {
        isWhole = false
        break
      }
      seen.push(name)
      this.used.add(name)
      const template = this.template(name)
      if (template === undefined) break
      this.#count(template, node)
      for (const [key, entry] of template.entries) if (key !== 'is') takeOver(entries, key, entry)
      next = template.entries.get('is')
    }
    const merged = { ...node, entries }
    if (!isWhole) this.#partial.add(merged)
    return merged
  }

  /** Whether a template of that node has a fault: what the node lacks may be in it. */
  isPartial(merged: MapValue): boolean {
    return this.#partial.has(merged)
  }

  /** Ends the reading when nodes take over too much: a lab would have it all. */
  #count(template: MapValue, node: MapValue): void {
    const size = this.#sizes.get(template) ?? sizeOf(template)
    this.#sizes.set(template, size)
    this.#taken += size
    if (this.#taken <= maxTaken) return
    const message = `the nodes inherit more than ${maxTaken} values from templates`
    this.#diagnostics.add(node.at, message, 'use fewer keys and labels in templates, or templates in fewer nodes')
    throw enough
  }

  #hintFor(name: string): string | undefined {
    if (kindOfWord(name) !== undefined) return `it is a kind: write kind: ${name}`
    return didYouMean(name, this.names)
  }

  #nameIn({ value }: Entry, seen: readonly string[]): string | undefined {
    if (value.type !== 'scalar' || value.value === null) {
      this.#diagnostics.add(value.at, 'expected the name of a template')
      return undefined
    }
    const name = value.source
    if (this.#section?.entries.has(name) !== true)
      this.#diagnostics.add(value.at, `there is no template ${quoted(name)}`, () => this.#hintFor(name))
    else if (seen.includes(name))
      this.#diagnostics.add(
        value.at,
        `the template ${quoted(name)} inherits from itself: ${[...seen, name].join(', ')}`,
      )
    else if (seen.length === maxTemplates)
      this.#diagnostics.add(
        value.at,
        `more than ${maxTemplates} templates inherit from one another: ${[...seen, name].join(', ')}`,
      )
    else if (this.template(name) === undefined)
      this.#diagnostics.add(at(this.#section, name)?.at ?? value.at, 'expected a map, such as { kind: pc }')
    else return name
    return undefined
  }
}

/** The number of values in a value. */
function sizeOf(value: Value): number {
  if (value.type === 'scalar') return 1 + Math.floor(value.source.length / textOfValue)
  const inner = value.type === 'list' ? value.items : [...value.entries.values()].map((entry) => entry.value)
  return inner.reduce((sum, it) => sum + sizeOf(it), 1)
}

/** Adds an entry of a template to those of a node, which win. */
function takeOver(entries: Map<string, Entry>, key: string, entry: Entry): void {
  const own = entries.get(key)
  if (own === undefined) {
    entries.set(key, entry)
    return
  }
  const value =
    key === 'labels' ? both(own.value, entry.value) : key === 'day0' ? withFiles(own.value, entry.value) : undefined
  if (value !== undefined) entries.set(key, { ...own, value })
}

/** Two maps as one; the first wins. */
function both(own: Value, other: Value): Value | undefined {
  if (own.type !== 'map' || other.type !== 'map') return undefined
  return { ...own, entries: new Map([...other.entries, ...own.entries]) }
}

function withFiles(own: Value, other: Value): Value | undefined {
  const merged = both(own, other)
  if (merged?.type !== 'map') return undefined
  const [ownFiles, otherFiles] = [at(own, 'files'), at(other, 'files')]
  const files = ownFiles && otherFiles && both(ownFiles, otherFiles)
  const entry = merged.entries.get('files')
  if (files === undefined || entry === undefined) return merged
  return { ...merged, entries: new Map([...merged.entries, ['files', { ...entry, value: files }]]) }
}
