import { wellFormed } from '../../../src/lib/text/escape.ts'
import type { Box } from '../map/geometry.ts'

/** The elements of SVG that the page draws itself. */
const shapeKinds = ['rect', 'ellipse', 'line', 'text'] as const
export type ShapeKind = (typeof shapeKinds)[number]

/** What users add to the map. */
export const drawables = [
  { kind: 'rect', noun: 'Rectangle', key: 'Shift+R' },
  { kind: 'ellipse', noun: 'Ellipse', key: 'Shift+E' },
  { kind: 'text', noun: 'Text', key: 'Shift+T' },
] as const
export type Drawable = (typeof drawables)[number]['kind']

/** A drawing that the page can draw and change: one element, of known attributes. */
export interface Shape {
  readonly kind: ShapeKind
  readonly width: number
  readonly height: number
  readonly attributes: Readonly<Record<string, string>>
  /** Of a text. */
  readonly text: string
}

/** Colours that can be read on a light map and on a dark one. */
export const colours = [
  { name: 'as the page', value: '#000000' },
  { name: 'grey', value: '#6b7a85' },
  { name: 'blue', value: '#1c7fa8' },
  { name: 'green', value: '#2c8a52' },
  { name: 'amber', value: '#a8700c' },
  { name: 'red', value: '#cc4b36' },
  { name: 'violet', value: '#8460c2' },
] as const
const blue = '#1c7fa8'

/** The colour of the page in place of black or white, so that a drawing of a light map can be read on a dark one. */
export function themed(colour: string): 'text' | 'panel' | undefined {
  if (/^(#000|#000000|black)$/i.test(colour)) return 'text'
  return /^(#fff|#ffffff|white)$/i.test(colour) ? 'panel' : undefined
}

/** Sides of a drawing, pixels. */
export const [minSide, maxSide] = [10, 10_000]
/** Characters of a text. A longer one is shown as a picture. */
const maxText = 10_000
const lineHeight = 1.25
/** Width of a character, in parts of the size of the font: rather too wide than too narrow. */
const characterWidth = 0.62

/** Only known attributes are drawn, so that a drawing of another program has no other effect. Their values: numbers, names, colours, no `url()`. */
const attributeNames = new Set([
  ...['x', 'y', 'width', 'height', 'cx', 'cy', 'rx', 'ry', 'x1', 'y1', 'x2', 'y2', 'opacity'],
  ...['fill', 'fill-opacity', 'stroke', 'stroke-width', 'stroke-opacity', 'stroke-dasharray'],
  ...['font-family', 'font-size', 'font-weight', 'font-style', 'text-decoration'],
])
const plainValue = /^[\w#.,%+ -]{0,200}$/
const whole = /^\s*<svg\b([^<>]*)>\s*<(rect|ellipse|line|text)\b([^<>]*?)(?:\/>|>([^<>]*)<\/\2>)\s*<\/svg>\s*$/
const attribute = /\s*([A-Za-z][\w:-]*)\s*=\s*(?:"([^"]*)"|'([^']*)')/y

/** The shape of a drawing; undefined: it has more than that, and is shown as a picture. */
export function shapeOf(svg: string): Shape | undefined {
  const [, outer, kind, inner, text = ''] = whole.exec(svg) ?? []
  if (outer === undefined || kind === undefined || inner === undefined) return undefined
  const [frame, attributes] = [attributesIn(outer), attributesIn(inner)]
  if (frame === undefined || attributes === undefined) return undefined
  const [width, height] = [sideOf(frame.width), sideOf(frame.height)]
  const isKnown = Object.entries(attributes).every(
    ([name, value]) => attributeNames.has(name) && plainValue.test(value),
  )
  if (!isKnown || width === undefined || height === undefined) return undefined
  if (kind === 'text') {
    const words = unescaped(text)
    if (words.length > maxText) return undefined
    return { kind, ...sizeOfText(words, fontSize(attributes)), attributes, text: words }
  }
  return text.trim() === '' ? { kind: kind as ShapeKind, width, height, attributes, text: '' } : undefined
}

/** The size of a drawing; 100 by 100 when its SVG has none. */
export function sizeOf(svg: string): Pick<Box, 'width' | 'height'> {
  const shape = shapeOf(svg)
  if (shape !== undefined) return shape
  // `<` is excluded: otherwise each of many `<svg` would be searched to the end of the text.
  const [, frame = ''] = /<svg\b([^<>]*)>/.exec(svg) ?? []
  const side = (name: string) => sideOf(new RegExp(`\\b${name}\\s*=\\s*["']([\\d.]+)`).exec(frame)?.[1]) ?? 100
  return { width: side('width'), height: side('height') }
}

/** The address of a drawing as a picture. */
export const pictureOf = (svg: string): string => `data:image/svg+xml,${encodeURIComponent(wellFormed(svg))}`

/** The attributes of an element; undefined: it is not made of attributes alone. */
function attributesIn(text: string): Record<string, string> | undefined {
  const found: Record<string, string> = {}
  attribute.lastIndex = 0
  let end = 0
  for (let match = attribute.exec(text); match !== null; match = attribute.exec(text)) {
    found[match[1] ?? ''] = match[2] ?? match[3] ?? ''
    end = attribute.lastIndex
  }
  return text.slice(end).trim() === '' ? found : undefined
}

function sideOf(text: string | undefined): number | undefined {
  const side = Number.parseFloat(text ?? '')
  return side >= 0 && side <= maxSide ? side : undefined
}

/** The drawing as SVG, as other programs read it, too. */
export function svgOf({ kind, width, height, attributes, text }: Shape): string {
  const written = Object.entries(attributes).map(([name, value]) => ` ${name}="${escaped(value)}"`)
  const element = kind === 'text' ? `<text${written.join('')}>${escaped(text)}</text>` : `<${kind}${written.join('')}/>`
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">${element}</svg>`
}

/** A new shape of a kind. */
export function newShape(kind: Drawable): Shape {
  if (kind === 'text') {
    const attributes = { fill: '#000000', 'font-family': 'sans-serif', 'font-size': '14' }
    return withText({ kind, width: 0, height: 0, attributes, text: '' }, 'Text')
  }
  const attributes = { fill: blue, 'fill-opacity': '0.15', stroke: blue, 'stroke-width': '2' }
  return withSize({ kind, width: 0, height: 0, attributes, text: '' }, { width: 200, height: 120 })
}

/** A shape of another size; of a text the size is that of its font. */
export function withSize(shape: Shape, { width: w, height: h }: Pick<Box, 'width' | 'height'>): Shape {
  const side = (value: number) => Math.round(Math.min(maxSide, Math.max(minSide, value)))
  const [width, height] = [side(w), side(h)]
  if (shape.kind === 'text') {
    const lines = linesOf(shape.text).length
    return withText(shape, shape.text, Math.max(6, Math.min(200, Math.round(height / lines / lineHeight))))
  }
  const lengths = {
    rect: { width: `${width}`, height: `${height}` },
    ellipse: { cx: `${width / 2}`, cy: `${height / 2}`, rx: `${width / 2}`, ry: `${height / 2}` },
    line: { x1: '0', y1: shape.attributes.y1 === '0' ? '0' : `${height / 2}`, x2: `${width}`, y2: `${height / 2}` },
  }
  return { ...shape, width, height, attributes: { ...shape.attributes, ...lengths[shape.kind] } }
}

/** A text with other words, or in another size of its font. */
export function withText(shape: Shape, text: string, size = fontSize(shape.attributes)): Shape {
  return { ...shape, text, ...sizeOfText(text, size), attributes: { ...shape.attributes, 'font-size': `${size}` } }
}

/** A shape in another colour: of a text its letters, else line and area, which stays as transparent as it was. */
export function withColour(shape: Shape, colour: string): Shape {
  const { fill = 'none' } = shape.attributes
  const parts = shape.kind === 'text' ? { fill: colour } : { stroke: colour, ...(fill !== 'none' && { fill: colour }) }
  return { ...shape, attributes: { ...shape.attributes, ...parts } }
}

/** The colour that `withColour` sets. */
export const colourOf = ({ kind, attributes }: Shape): string =>
  ((kind === 'text' ? attributes.fill : attributes.stroke) ?? '#000000').toLowerCase()

export const linesOf = (text: string): string[] => text.split(/\r?\n/)

/** The size of the letters, pixels of the map. */
export function fontSize({ 'font-size': size }: Shape['attributes']): number {
  const number = Number.parseFloat(size ?? '')
  return number > 0 && number <= 1000 ? number : 14
}

/** Distance of the lines of a text, pixels of the map. */
export const lineStep = (size: number): number => size * lineHeight

function sizeOfText(text: string, size: number): { width: number; height: number } {
  const lines = linesOf(text)
  const longest = Math.max(1, ...lines.map((it) => [...it].length))
  return { width: Math.ceil(longest * size * characterWidth), height: Math.ceil(lines.length * lineStep(size)) }
}

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
/** A text for the content of an element or the value of an attribute. */
export const escaped = (text: string): string =>
  text.replace(/[&<>"]/g, (character) => entities[character] ?? character)
const names: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

/** A text without entities (XML 1.0, 4.6); unknown ones stay. */
function unescaped(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#x([\da-fA-F]{1,6})|(amp|lt|gt|quot|apos));/g, (all, decimal, hex, name) => {
    if (name !== undefined) return names[name] ?? all
    const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal)
    return code <= 0x10ffff ? String.fromCodePoint(code) : all
  })
}
