import { conflict } from '../errors/api-error.ts'
import type { LabStore } from './store.ts'

/** Colours of our symbols, for light and for dark maps. */
const stroke = '#1f5f8b'
const fill = '#e8f1f8'

const svg = (body: string, width = 60, height = 60): string =>
  `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 60 60"><g fill="${fill}" stroke="${stroke}" stroke-width="2.5" stroke-linejoin="round" stroke-linecap="round">${body}</g></svg>`

const arrows = (paths: string): string => `<g fill="none">${paths}</g>`
const box = '<rect x="6" y="20" width="48" height="22" rx="3"/>'
const disc =
  '<ellipse cx="30" cy="40" rx="25" ry="11"/><path d="M5 22v18M55 22v18"/><ellipse cx="30" cy="22" rx="25" ry="11"/>'
const cloud = '<path d="M17 46a11 11 0 0 1-1-22 15 15 0 0 1 28-3 12.500 12.500 0 0 1 1 25z"/>'
const monitor = '<rect x="8" y="10" width="44" height="30" rx="3"/><path d="M22 50h16M30 40v10"/>'

/** The built-in symbols, all our own drawings. */
export const builtInSymbols: Readonly<Record<string, string>> = {
  computer: svg(monitor),
  pc: svg(`${monitor}${arrows('<path d="M15 20l5 5-5 5M24 31h8"/>')}`),
  server: svg(
    '<rect x="14" y="6" width="32" height="48" rx="3"/><path d="M20 16h20M20 24h20M20 32h12"/><circle cx="38" cy="44" r="2"/>',
  ),
  machine: svg(`${monitor}${arrows('<circle cx="30" cy="25" r="8"/><path d="M30 17v8l5 4"/>')}`),
  router: svg(
    `${disc}${arrows('<path d="M18 18l7 3m-7-3l3.500-1.500M42 26l-7-3m7 3l-3.500 1.500M35 18.500l7-3M25 25.500l-7 3"/>')}`,
  ),
  switch: svg(`${box}${arrows('<path d="M14 28h14m-4-4l4 4-4 4M46 34H32m4-4l-4 4 4 4"/>')}`),
  multilayer_switch: svg(
    `<rect x="8" y="8" width="44" height="44" rx="3"/>${arrows('<path d="M16 24h14m-4-4l4 4-4 4M44 36H30m4-4l-4 4 4 4"/>')}`,
  ),
  hub: svg(`${box}${arrows('<path d="M14 31h32M20 26l-6 5 6 5M40 26l6 5-6 5"/>')}`),
  firewall: svg(
    '<rect x="8" y="10" width="44" height="40" rx="2"/><path d="M8 20h44M8 30h44M8 40h44M22 10v10M38 10v10M16 20v10M30 20v10M44 20v10M22 30v10M38 30v10M16 40v10M30 40v10M44 40v10"/>',
  ),
  cloud: svg(cloud),
  nat: svg(`${cloud}${arrows('<path d="M20 36h18m-5-5l5 5-5 5"/>')}`),
  unknown: svg(
    '<rect x="10" y="10" width="40" height="40" rx="4" stroke-dasharray="4 4"/><path fill="none" d="M24 24a6 6 0 1 1 8 6c-2 1-2 2-2 4M30 40v.1"/>',
  ),
}

/** Words in the names of symbols of other programs, and our symbol for each. */
const likeness: readonly (readonly [RegExp, keyof typeof builtInSymbols & string])[] = [
  [/multilayer|layer_?3|l3/, 'multilayer_switch'],
  [/router|iou_l3/, 'router'],
  [/switch|iou_l2|bridge/, 'switch'],
  [/hub/, 'hub'],
  [/firewall|asa|fortigate/, 'firewall'],
  [/nat/, 'nat'],
  [/cloud|internet/, 'cloud'],
  [/server/, 'server'],
  [/vpcs/, 'pc'],
  [/qemu|vbox|vmware|docker|guest|vm/, 'machine'],
  [/computer|pc|laptop|host/, 'computer'],
]

/** The built-in symbol (SVG) for a name of a client, such as `router` or `:/symbols/classic/router.svg`. */
export function symbolNamed(word: string): string | undefined {
  const name = (word.split('/').at(-1) ?? '').replace(/\.(svg|png)$/i, '').toLowerCase()
  const own = Object.hasOwn(builtInSymbols, name) ? builtInSymbols[name] : undefined
  if (own !== undefined || !word.startsWith(':/symbols/')) return own
  return builtInSymbols[likeness.find(([words]) => words.test(name))?.[1] ?? 'unknown']
}

/** Width and height of an SVG in pixels, from its attributes or its view box; undefined when it has neither. */
export function sizeOfSvg(text: string): { width: number; height: number } | undefined {
  const tag = /<svg\b[^>]*>/i.exec(text)?.[0] ?? ''
  const attribute = (name: string) =>
    Number.parseFloat(new RegExp(`\\s${name}\\s*=\\s*["']\\s*([\\d.]+)`, 'i').exec(tag)?.[1] ?? '')
  const [, , wide, high] =
    /viewBox\s*=\s*["']([^"']*)/i
      .exec(tag)?.[1]
      ?.trim()
      .split(/[\s,]+/)
      .map(Number) ?? []
  const [width, height] = [attribute('width') || wide, attribute('height') || high]
  if (width === undefined || height === undefined || !(width > 0) || !(height > 0)) return undefined
  return { width: Math.round(width), height: Math.round(height) }
}

const scope = 'symbols'
const maxSymbols = 500

/** The symbols that users uploaded, as SVG. */
export class Symbols {
  readonly #store: LabStore
  readonly #own = new Map<string, string>()

  private constructor(store: LabStore) {
    this.#store = store
  }

  static async open(store: LabStore): Promise<Symbols> {
    const symbols = new Symbols(store)
    for (const [id, text] of (await store.load(scope)) ?? []) symbols.#own.set(id, text as string)
    return symbols
  }

  names(): string[] {
    return [...this.#own.keys()].sort()
  }

  get(id: string): string | undefined {
    return this.#own.get(id)
  }

  async save(id: string, text: string): Promise<void> {
    if (!this.#own.has(id) && this.#own.size >= maxSymbols)
      throw conflict(`There are ${maxSymbols} symbols already; replace one of them`)
    await this.#store.save(scope, new Map([[id, text]]))
    this.#own.set(id, text)
  }
}
