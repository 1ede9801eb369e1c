import { expect, test } from 'vitest'
import {
  colourOf,
  newShape,
  pictureOf,
  type Shape,
  shapeOf,
  sizeOf,
  svgOf,
  withColour,
  withSize,
  withText,
} from '../../../runtime/browser/drawings/shape.ts'

const read = (svg: string): Shape => {
  const shape = shapeOf(svg)
  if (shape === undefined) throw new Error(`no shape: ${svg}`)
  return shape
}

test('drawings of other clients become shapes', () => {
  const rect =
    '<svg height="100" width="200"><rect fill="#ffffff" fill-opacity="1.0" height="100" stroke="#000000" stroke-width="2" width="200" /></svg>'
  expect(read(rect)).toMatchObject({ kind: 'rect', width: 200, height: 100, attributes: { stroke: '#000000' } })
  const text =
    '<svg width="88" height="22"><text fill="#000000" fill-opacity="1.0" font-family="TypeWriter" font-size="10.0" font-weight="bold">a &lt;b&gt; &#38; c\nd</text></svg>'
  expect(read(text)).toMatchObject({ kind: 'text', text: 'a <b> & c\nd', attributes: { 'font-weight': 'bold' } })
  const line =
    "<svg width='10' height='1'><line x1='0' y1='0' x2='10' y2='0' stroke='red' stroke-dasharray='5, 5'/></svg>"
  expect(read(line)).toMatchObject({ kind: 'line', attributes: { 'stroke-dasharray': '5, 5' } })
})

test('a drawing with anything else is no shape', () => {
  const drawings = [
    '',
    'text',
    '<svg width="10" height="10"><script>alert(1)</script></svg>',
    '<svg width="10" height="10"><rect onclick="alert(1)"/></svg>',
    '<svg width="10" height="10"><rect fill="url(https://elsewhere.example/x)"/></svg>',
    '<svg width="10" height="10"><rect style="fill:red"/></svg>',
    '<svg width="10" height="10"><rect/><rect/></svg>',
    '<svg width="10" height="10"><text>a<tspan>b</tspan></text></svg>',
    '<svg width="10" height="10"><rect fill="red" stray/></svg>',
    '<svg><rect fill="red"/></svg>',
    '<svg width="1e9" height="10"><rect fill="red"/></svg>',
    '<!DOCTYPE svg [<!ENTITY x "y">]><svg width="10" height="10"><rect/></svg>',
    `<svg width="10" height="10"><rect ${'x="1" '.repeat(5)}${' '.repeat(100_000)}!/></svg>`,
  ]
  for (const svg of drawings) expect(shapeOf(svg), svg.slice(0, 80)).toBeUndefined()
})

test('a shape that was written can be read again', () => {
  const text = withText(newShape('text'), '<script>"&amp;\nשלום')
  for (const shape of [newShape('rect'), newShape('ellipse'), text]) expect(read(svgOf(shape))).toEqual(shape)
  expect(svgOf(text)).not.toContain('<script')
})

test('a change of a shape keeps its other properties', () => {
  const rect = withSize({ ...newShape('rect') }, { width: 99.6, height: 3 })
  expect([rect.width, rect.height, rect.attributes.width]).toEqual([100, 10, '100'])
  const frame = withColour({ ...rect, attributes: { ...rect.attributes, fill: 'none' } }, '#CC4B36')
  expect([colourOf(frame), frame.attributes.fill, frame.attributes['fill-opacity']]).toEqual([
    '#cc4b36',
    'none',
    '0.15',
  ])
  const text = withColour(newShape('text'), '#2c8a52')
  expect([colourOf(text), text.attributes.stroke]).toEqual(['#2c8a52', undefined])
  expect(withSize(text, { width: 1, height: 50 }).attributes['font-size']).toBe('40')
})

test('the size of any drawing is found quickly', () => {
  expect(sizeOf('<?xml version="1.0"?><svg height="20" width="30px"><g/></svg>')).toMatchObject({
    width: 30,
    height: 20,
  })
  // The longest drawing. Each beginning looked through to the end took minutes.
  expect(sizeOf('<svg '.repeat((2 << 20) / 5))).toEqual({ width: 100, height: 100 })
})

test('a drawing with half a surrogate pair is still shown', () => {
  expect(pictureOf('<svg>\ud800</svg>')).toBe('data:image/svg+xml,%3Csvg%3E%EF%BF%BD%3C%2Fsvg%3E')
})
