import { symbolShapes } from './symbol-shapes.ts'

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
