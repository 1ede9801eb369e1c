import { Ajv } from 'ajv'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { labFileSchema } from '../../../src/labfile/json-schema.ts'
import { example } from './example.ts'

const validate = new Ajv({ strict: false }).compile(labFileSchema())
/** The paths of the faults that an editor shows. */
const faultsIn = (text: string): string[] =>
  validate(parse(text)) ? [] : (validate.errors ?? []).map((it) => it.instancePath)

test('the example fits the schema', () => {
  expect(faultsIn(example)).toEqual([])
})

test.each([
  `lab: x\nnodes: { A: { kind: machine, ram: "\${size}", at: ["\${x}", 2] } }`,
  'lab: x\nnodes: { A: { kind: vm, vmname: a, console: null } }\nlinks:\nsegments:',
  'lab: x\nnodes: { A: { kind: dynamips, platform: c2600, chassis: 2610, image: a } }',
  'lab: x\ntemplates: { r: { kind: iou, image: i } }\nnodes: { A: { is: r, ethernet_adapters: 1 } }',
  'lab: x\nnodes: {}\nsegments: { s: { kind: switch, ports: { 1: { trunk: true } }, members: [A, { end: B, vlan: 2, delay: 1ms }] } }',
])('%s fits the schema', (text) => {
  expect(faultsIn(text)).toEqual([])
})

test.each([
  ['lab: X\nnodes: {}', '/lab'],
  ['lab: x', ''],
  ['lab: x\nnodes: {}\nfoo: 1', ''],
  ['lab: x\nnodes: { A: {} }', '/nodes/A'],
  ['lab: x\nnodes: { A: { kind: qemu } }', '/nodes/A/kind'],
  ['lab: x\nnodes: { A: { kind: pc, image: x } }', '/nodes/A'],
  ['lab: x\nnodes: { A: { kind: machine, ram: lots } }', '/nodes/A/ram'],
  ['lab: x\nnodes: { A: { is: r, imgae: x } }', '/nodes/A'],
  ['lab: x\nnodes: {}\nlinks: [[A]]', '/links/0'],
  ['lab: x\nnodes: {}\nlinks: [{ ends: [A, B], delay: 20 }]', '/links/0/delay'],
  ['lab: x\nnodes: {}\nsegments: { s: { kind: hub, ports: { x: {} } } }', '/segments/s/ports'],
])('%s does not fit: %s', (text, path) => {
  expect(faultsIn(text)).toContain(path)
})
