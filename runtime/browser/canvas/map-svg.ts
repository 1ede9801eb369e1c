import type { LabDrawing, LabLink, LabNode } from '../../../src/client/patchbay.ts'
import { wellFormed } from '../../../src/lib/text/escape.ts'
import { symbolShapes } from '../../../src/model/lab/symbol-shapes.ts'
import { stacked } from '../drawings/layers.ts'
import {
  escaped,
  fontSize,
  lineStep,
  linesOf,
  pictureOf,
  type Shape,
  shapeOf,
  sizeOf,
  themed,
} from '../drawings/shape.ts'
import { shortImpairment } from '../links/impairment.ts'
import { type LinkGrade, verdictOf } from '../links/verdict.ts'
import {
  along,
  type Box,
  boxAround,
  boxOf,
  boxOfAll,
  type Line,
  labelPoints,
  lineBetween,
  pathOf,
  tile,
} from '../map/geometry.ts'
import { badgeWidth, hasPortRoom, shortened } from '../map/labels.ts'
import { portName } from '../map/ports.ts'
import { strandsOf } from '../map/strands.ts'
import { portLabel } from '../map/vlans.ts'
import { stateWord } from '../state/node-phase.ts'

/** The contents of a map, and what a file cannot look up. */
export interface MapContents {
  readonly title: string
  readonly nodes: readonly LabNode[]
  readonly links: readonly LabLink[]
  readonly drawings: readonly LabDrawing[]
  readonly hasPortNames: boolean
  /** Whether it shows what runs, and where frames pass. */
  readonly hasStates: boolean
  /** The size at which the map is shown, pixels, where that is small: without names, and with lines and nodes that can still be seen. */
  readonly shownAt?: { readonly width: number; readonly height: number } | undefined
  readonly symbolOf: (node: LabNode) => string
  /** The SVG of symbols that are not built in. A node whose symbol is not there has none. */
  readonly symbols: ReadonlyMap<string, string>
  /** The value of a colour of the style sheet, such as `panel`. */
  readonly colour: (name: string) => string
}

/** Room around what is drawn: names are wider than their tiles. */
const margin = 50
/** The same where there are no names. */
const smallMargin = 30
/** A small picture is never larger than this part of the map. */
const largestScale = 0.6
/** Least width of a line, and least side of a tile, that can be seen in a small picture, pixels. A larger tile may cover another one. */
const [leastLine, leastTile, largestTile] = [1.1, 15, 1.6 * tile]
const lineWidth = 2.2
/** Characters of the name of a node. */
const maxName = 20
const lineOf: Readonly<Record<LinkGrade, readonly [colour: string, more: string]>> = {
  good: ['good', ''],
  bad: ['bad', ' stroke-dasharray="9 5"'],
  off: ['off', ' stroke-dasharray="2 5" stroke-linecap="round"'],
  unknown: ['off', ''],
}

/** The map as an SVG document that needs nothing else: it has no script, no style sheet and no address of a server. */
export function mapSvg(map: MapContents): string {
  const { x, y, width, height } = frameOf(map)
  const times = map.shownAt === undefined ? 0 : Math.max(width / map.shownAt.width, height / map.shownAt.height)
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="${x} ${y} ${width} ${height}" font-family="system-ui, sans-serif" font-size="12.5" text-anchor="middle">`,
    `<title>${xml(map.title)}</title>`,
    `<rect x="${x}" y="${y}" width="${width}" height="${height}" fill="${map.colour('map')}"/>`,
    ...stacked(map.drawings).map((it) => drawingSvg(it, map)),
    ...linksSvg(map, Math.max(lineWidth, round(times * leastLine))),
    ...map.nodes.map((it) => nodeSvg(it, map, Math.min(largestTile, Math.max(tile, times * leastTile)))),
    '</svg>\n',
  ].join('\n')
}

function frameOf({ nodes, links, drawings, shownAt }: MapContents): Box {
  const bends = linesOfMap(nodes, links).map(({ line }) => ({ ...along(line, 0.5), width: 0, height: 0 }))
  const hasNames = shownAt === undefined
  const around = nodes.length === 0 ? [] : hasNames ? (boxOf(nodes) ?? []) : boxAround(nodes)
  const boxes = [around, bends, drawings.map(turnedBox)].flat()
  const room = hasNames ? margin : smallMargin
  const box = boxOfAll(boxes) ?? { x: 0, y: 0, width: 0, height: 0 }
  const width = Math.max(Math.ceil(box.width) + 2 * room, Math.ceil((shownAt?.width ?? 0) / largestScale))
  const height = Math.max(Math.ceil(box.height) + 2 * room, Math.ceil((shownAt?.height ?? 0) / largestScale))
  const [x, y] = [Math.floor(box.x + (box.width - width) / 2), Math.floor(box.y + (box.height - height) / 2)]
  return { x, y, width, height }
}

/** The box around a drawing that is turned about its upper left corner. */
function turnedBox({ x, y, svg, rotation }: LabDrawing): Box {
  const { width, height } = sizeOf(svg)
  const [cos, sin] = [Math.cos((rotation * Math.PI) / 180), Math.sin((rotation * Math.PI) / 180)]
  const [xs, ys] = [
    [0, width * cos, -height * sin, width * cos - height * sin],
    [0, width * sin, height * cos, width * sin + height * cos],
  ]
  const [left, top] = [Math.min(...xs), Math.min(...ys)]
  return { x: x + left, y: y + top, width: Math.max(...xs) - left, height: Math.max(...ys) - top }
}

function linesOfMap(nodes: readonly LabNode[], links: readonly LabLink[]) {
  const known = new Map(nodes.map((it) => [it.node_id, it]))
  const strands = strandsOf(links)
  return links.flatMap((link) => {
    const [from, to] = link.nodes
    const [a, b] = [known.get(from?.node_id ?? ''), known.get(to?.node_id ?? '')]
    const strand = strands.get(link.link_id)
    if (from === undefined || to === undefined || a === undefined || b === undefined || strand === undefined) return []
    // Every node has a link to the management network.
    if (a.properties.management === true || b.properties.management === true) return []
    return [{ link, from, to, a, b, line: lineBetween(a, b, strand) }]
  })
}

function linksSvg(map: MapContents, width: number): string[] {
  const { nodes, links, hasPortNames, hasStates, shownAt, colour } = map
  const lines = linesOfMap(nodes, links)
  const drawn = lines.map(({ link, from, to, a, b, line }) => {
    const [name, more] = lineOf[hasStates ? verdictOf(link).grade : 'unknown']
    const title = xml(`${a.name} ${portName(a, from)} – ${b.name} ${portName(b, to)}`)
    return `<path d="${pathOf(line)}" fill="none" stroke="${colour(name)}" stroke-width="${width}"${more}><title>${title}</title></path>`
  })
  const label = (at: Line['from'], text: string) =>
    textSvg(at.x, at.y + 4, text, `font-size="11" fill="${colour('muted')}" ${haloOf(colour)}`)
  const labels = lines.flatMap(({ link, from, to, a, b, line }) => {
    const state = link.suspend ? 'suspended' : shortImpairment(link)
    const [near, far] = [portLabel(a, from), portLabel(b, to)]
    const [first, second] = labelPoints(line, [near, far])
    const names = hasPortNames && hasPortRoom(line, state, Math.max(near.length, far.length))
    return [
      ...(names ? [label(first, near), label(second, far)] : []),
      ...(state === '' || shownAt !== undefined ? [] : [badgeSvg(line, state, colour)]),
    ]
  })
  return [...drawn, ...labels]
}

function badgeSvg(line: Line, text: string, colour: MapContents['colour']): string {
  const { x, y } = along(line, 0.5)
  const width = badgeWidth(text)
  const box = `<rect x="${round(x - width / 2)}" y="${round(y - 10)}" width="${round(width)}" height="20" rx="10" fill="${colour('warn-ground')}" stroke="${colour('warn')}"/>`
  return box + textSvg(x, y + 4, text, `font-size="11.5" fill="${colour('warn')}"`)
}

function nodeSvg(node: LabNode, map: MapContents, side: number): string {
  const { symbolOf, symbols, hasStates, shownAt, colour } = map
  const [fill, stroke] =
    node.status_reason !== null
      ? ['bad', 'panel']
      : node.status === 'started'
        ? ['good', 'panel']
        : node.status === 'suspended'
          ? ['warn', 'panel']
          : ['panel', 'off']
  const symbol = symbolOf(node)
  const own = symbols.get(symbol)
  const at = `x="10" y="10" width="${tile - 20}" height="${tile - 20}"`
  const shape = Object.hasOwn(symbolShapes, symbol)
    ? `<svg ${at} viewBox="0 0 60 60" fill="${colour('symbol-fill')}" stroke="${colour('symbol-line')}" stroke-width="2.5" stroke-linejoin="round" stroke-linecap="round">${symbolShapes[symbol]}</svg>`
    : own === undefined
      ? ''
      : `<image ${at} href="${pictureOf(own)}"/>`
  const larger = side === tile ? '' : ` scale(${round(side / tile)})`
  const [x, y] = [node.x, node.y].map((it) => round(it - (side - tile) / 2))
  return [
    `<g transform="translate(${x} ${y})${larger}"><title>${xml(`${node.name}, ${node.node_type}, ${stateWord(node.status)}`)}</title>`,
    `<rect width="${tile}" height="${tile}" rx="12" fill="${colour('panel')}" stroke="${colour('line')}" stroke-width="1.5"/>`,
    shape,
    hasStates
      ? `<circle cx="${tile - 5}" cy="5" r="6.5" fill="${colour(fill)}" stroke="${colour(stroke)}" stroke-width="2.5"/>`
      : '',
    shownAt === undefined
      ? textSvg(
          tile / 2,
          tile + 20,
          shortened(node.name, maxName),
          `font-weight="500" fill="${colour('text')}" ${haloOf(colour)}`,
        )
      : '',
    '</g>',
  ].join('')
}

function drawingSvg({ x, y, rotation, svg }: LabDrawing, { colour }: MapContents): string {
  const shape = shapeOf(svg)
  const turned = rotation === 0 ? '' : ` rotate(${rotation})`
  const { width, height } = sizeOf(svg)
  // In a picture, the SVG of another program has no scripts and no requests.
  const content =
    shape === undefined
      ? `<image width="${width}" height="${height}" href="${pictureOf(svg)}"/>`
      : shapeSvg(shape, colour)
  return `<g transform="translate(${x} ${y})${turned}">${content}</g>`
}

function shapeSvg({ kind, attributes, text }: Shape, colour: MapContents['colour']): string {
  const size = fontSize(attributes)
  const painted = { fill: '#000000', ...attributes, ...(kind === 'text' && { 'font-size': `${size}` }) }
  const written = Object.entries(painted).map(([name, value]) => {
    const own = name === 'fill' || name === 'stroke' ? themed(value) : undefined
    return ` ${name}="${xml(own === undefined ? value : colour(own))}"`
  })
  if (kind !== 'text') return `<${kind}${written.join('')}/>`
  const lines = linesOf(text).map(
    (line, index) => `<tspan x="0" y="${round(size * 0.95 + index * lineStep(size))}">${xml(line)}</tspan>`,
  )
  return `<text xml:space="preserve" text-anchor="start"${written.join('')}>${lines.join('')}</text>`
}

const textSvg = (x: number, y: number, text: string, more: string): string =>
  `<text x="${round(x)}" y="${round(y)}" ${more}>${xml(text)}</text>`

/** A rim in the colour of the map, so that a text on a line can be read. */
const haloOf = (colour: MapContents['colour']): string =>
  `stroke="${colour('map')}" stroke-width="4" stroke-linejoin="round" paint-order="stroke"`

const round = (value: number): number => Math.round(value * 100) / 100

/** A text without characters that XML does not have (XML 1.0, 2.2). */
const xml = (text: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is replaced
  escaped(wellFormed(text).replace(/[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g, '\ufffd'))
