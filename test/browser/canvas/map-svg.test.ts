import { DOMParser } from '@xmldom/xmldom'
import { expect, test } from 'vitest'
import { type MapContents, mapSvg } from '../../../runtime/browser/canvas/map-svg.ts'
import type { LabDrawing, LabLink, LabNode } from '../../../src/client/patchbay.ts'

const port = { name: 'Ethernet0', short_name: 'e0', adapter_number: 0, port_number: 0 }
const node = (node_id: string, x: number, more: Partial<LabNode> = {}) =>
  ({
    ...{ node_id, name: node_id, node_type: 'pc', status: 'started', status_reason: null, ports: [port], x, y: 0 },
    properties: {},
    ...more,
  }) as LabNode
const link = (link_id: string, more: Partial<LabLink> = {}) =>
  ({
    ...{ link_id, verdict: 'ok', verdict_reason: null, suspend: false, filters: {}, filters_ab: {}, filters_ba: {} },
    nodes: ['A', 'B'].map((node_id) => ({ node_id, adapter_number: 0, port_number: 0 })),
    ...more,
  }) as LabLink
const drawing = (svg: string, more: Partial<LabDrawing> = {}) =>
  ({ drawing_id: svg, x: 0, y: 200, z: 1, rotation: 0, svg, ...more }) as LabDrawing
const map = (given: Partial<MapContents>): MapContents => ({
  ...{ title: 'Lab', nodes: [node('A', 0), node('B', 300)], links: [], drawings: [] },
  ...{ hasPortNames: true, hasStates: true, symbols: new Map() },
  ...{ symbolOf: () => 'pc', colour: (name: string) => `colour-${name}` },
  ...given,
})
/** The document, which is well-formed XML. */
const read = (svg: string) =>
  new DOMParser({
    onError: (level, message) => {
      if (level !== 'warning') throw new Error(message)
    },
  }).parseFromString(svg, 'image/svg+xml')
const textsOf = (svg: string, tag = 'text') =>
  Array.from(read(svg).getElementsByTagName(tag), (it) => it.textContent?.trim())

test('a map has its nodes, links, names of ports, impairment and drawings', () => {
  const links = [link('l', { filters: { delay: [100] } }), link('m', { verdict: 'silent' })]
  const drawings = [drawing('<svg width="90" height="20"><text fill="#000000" font-size="14">a\nb</text></svg>')]
  const svg = mapSvg(map({ links, drawings }))
  expect(textsOf(svg)).toEqual(['ab', 'e0', 'e0', '100 ms', 'e0', 'e0', 'A', 'B'])
  expect(textsOf(svg, 'title')).toEqual([
    'Lab',
    ...['A Ethernet0 – B Ethernet0', 'A Ethernet0 – B Ethernet0', 'A, pc, running', 'B, pc, running'],
  ])
  // Two links between the same nodes are bowed apart, and the one that passes nothing is told by more than its colour.
  const [first, second] = Array.from(read(svg).getElementsByTagName('path'), (it) => it.getAttribute('d'))
  expect(first).toMatch(/^M32 32Q182 \S+ 332 32$/)
  expect(second).not.toBe(first)
  expect(svg).toContain('stroke="colour-bad" stroke-width="2.2" stroke-dasharray')
  expect(mapSvg(map({ links, hasPortNames: false }))).not.toContain('>e0<')
})

test('a small map has no texts, and without states it shows neither what runs nor where frames pass', () => {
  const links = [link('l', { filters: { delay: [100] } }), link('m', { verdict: 'silent' })]
  const small = { links, hasPortNames: false, shownAt: { width: 300, height: 110 } }
  expect(textsOf(mapSvg(map(small)))).toEqual([])
  expect(mapSvg(map(small))).toContain('colour-bad')
  const svg = mapSvg(map({ ...small, hasStates: false }))
  expect(svg).not.toMatch(/colour-(good|bad|warn)/)
  expect(read(svg).getElementsByTagName('circle')).toHaveLength(0)
})

test('in a small map of a large lab, lines are wider and nodes larger, and a small lab is not blown up', () => {
  const shownAt = { width: 300, height: 110 }
  const of = (x: number) => mapSvg(map({ nodes: [node('A', 0), node('B', x)], links: [link('l')], shownAt }))
  expect(of(200)).toContain('viewBox="-118 -60 500 184"')
  expect(of(200)).toContain('stroke-width="2.2"')
  expect(of(3000)).toContain('viewBox="-30 -60 3124 184"')
  expect(of(3000)).toContain('stroke-width="11.45"')
  expect(of(3000)).toContain('translate(-19.2 -19.2) scale(1.6)')
})

test('texts of users are escaped, and drawings of other programs are left out', () => {
  const name = '</text><script>alert(1)</script>"\u0001\ud800&'
  const foreign = '<svg width="10" height="10"><script>alert(2)</script></svg>'
  const svg = mapSvg(
    map({
      ...{ title: name, nodes: [node('A', 0, { name }), node('B', 0)], links: [link('l')] },
      drawings: [drawing(foreign), drawing('<svg width="9" height="9"><text fill="#fff">&lt;script&gt;</text></svg>')],
      symbolOf: ({ node_id }) => (node_id === 'A' ? 'own' : 'absent'),
      symbols: new Map([['own', foreign]]),
    }),
  )
  const all = Array.from(read(svg).getElementsByTagName('*'))
  expect(all.filter(({ tagName }) => /script|style|foreignObject/i.test(tagName))).toEqual([])
  const addresses = all.flatMap((it) => it.getAttribute('href') ?? [])
  expect(addresses).toEqual(Array.from({ length: 2 }, () => `data:image/svg+xml,${encodeURIComponent(foreign)}`))
  expect(textsOf(svg, 'title')[0]).toBe('</text><script>alert(1)</script>"\ufffd\ufffd&')
})

test('the view box has all drawings, rotated ones included, and an empty map has a view box', () => {
  const long = drawing('<svg width="400" height="10"><rect width="400" height="10"/></svg>', { rotation: 90 })
  const boxOf = (given: Partial<MapContents>) => /viewBox="([^"]*)"/.exec(mapSvg(map(given)))?.[1]
  expect(boxOf({})).toBe('-50 -50 464 189')
  expect(boxOf({ drawings: [long] })).toBe('-60 -50 474 700')
  expect(boxOf({ nodes: [] })).toBe('-50 -50 100 100')
})
