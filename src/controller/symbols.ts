import { conflict } from '../errors/api-error.ts'
import { symbolShapes } from '../model/lab/symbol-shapes.ts'
import type { SharedDocument } from './shared-document.ts'

/** Colours of our symbols, for light and for dark maps. */
const stroke = '#1f5f8b'
const fill = '#e8f1f8'

const svg = (body: string, width = 60, height = 60): string =>
  `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 60 60"><g fill="${fill}" stroke="${stroke}" stroke-width="2.5" stroke-linejoin="round" stroke-linecap="round">${body}</g></svg>`

/** The built-in symbols as SVG. */
export const builtInSymbols: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(symbolShapes).map(([id, shape]) => [id, svg(shape)]),
)

/** Words in the names of symbols of other programs, and our symbol for each. */
const likeness: readonly (readonly [RegExp, string])[] = [
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

const maxSymbols = 500

/** The symbols that users uploaded, as SVG. */
export class Symbols {
  readonly #own: SharedDocument<string>

  constructor(own: SharedDocument<string>) {
    this.#own = own
  }

  names(): string[] {
    return [...this.#own.values.keys()].sort()
  }

  get(id: string): string | undefined {
    return this.#own.values.get(id)
  }

  async save(id: string, text: string): Promise<void> {
    await this.#own.save(id, text, (count) => {
      if (count >= maxSymbols) throw conflict(`The limit of ${maxSymbols} symbols is reached; replace one of them`)
    })
  }
}
