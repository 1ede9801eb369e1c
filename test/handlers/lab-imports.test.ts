import { expect, test } from 'vitest'
import type { LabImport } from '../../src/model/lab/import.ts'
import { body, post } from '../support/api.ts'

test('a topology of containerlab becomes a lab file, and what this one has not is listed', async () => {
  const text = `name: two
topology:
  nodes:
    h1: { kind: linux, binds: [a:b], exec: [ip addr add 10.0.0.1/24 dev eth1] }
    h2: { kind: linux }
  links:
    - endpoints: [h1:eth1, h2:eth1]
`
  const answer = await post('/v2/imports', { text })
  expect(answer.status).toBe(200)
  expect(await body<LabImport>(answer)).toEqual({
    format: 'containerlab',
    lab: 'two',
    text: `lab: two
version: 1

nodes:
  h1:
    kind: pc
    config:
      text: |
        ip 10.0.0.1/24
  h2: { kind: pc }

links:
  - [ h1, h2 ]
`,
    images: [],
    left_out: [
      {
        path: 'topology.nodes.h1.binds',
        line: 4,
        column: 24,
        message: 'is not taken over: a node has no files of the host',
      },
    ],
  })
})

test('a file that cannot be read is refused with line and column', async () => {
  const answer = await post('/v2/imports', { text: 'name: x\ntopology: []\n' })
  expect(answer.status).toBe(400)
  expect(await body(answer)).toEqual({ status: 400, message: '2:1: topology: expected an object, got []' })
  expect((await post('/v2/imports', { text: 'name: x\n', format: 'visio' })).status).toBe(400)
})
