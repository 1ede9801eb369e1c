import { expect, test } from 'vitest'
import type { ApplianceImport } from '../../src/model/lab/appliance.ts'
import type { LabImport } from '../../src/model/lab/import.ts'
import { body, del, post } from '../support/api.ts'

test('a topology of containerlab becomes a lab file, and the parts that this lacks are listed', async () => {
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
    nodes: [
      { name: 'h1', kind: 'pc', from: 'linux', line: 4, column: 5 },
      { name: 'h2', kind: 'pc', from: 'linux', line: 5, column: 5 },
    ],
    images: [],
    left_out: [
      {
        path: 'topology.nodes.h1.binds',
        line: 4,
        column: 24,
        effect: 'left-out',
        message: 'is not imported: nodes do not see files of the host',
      },
    ],
  })
})

test('a configuration is kept when it is among the files beside the topology, and else it is left out', async () => {
  const text = 'name: x\ntopology:\n  nodes:\n    r1: { kind: cisco_iol, startup-config: configs/r1.cfg }\n'
  const imported = async (files?: readonly string[]) => body<LabImport>(post('/v2/imports', { text, files }))
  for (const files of [['r1.cfg'], ['configs/r1.cfg'], undefined])
    expect((await imported(files)).text).toContain('config: ./configs/r1.cfg')
  const { text: without, left_out } = await imported(['other.cfg'])
  expect(without).not.toContain('config:')
  expect(left_out).toContainEqual(
    expect.objectContaining({
      path: 'topology.nodes.r1.startup-config',
      effect: 'left-out',
      message: expect.stringContaining('there is no text file "configs/r1.cfg"'),
    }),
  )
})

test('a file that cannot be read is refused with line and column', async () => {
  const answer = await post('/v2/imports', { text: 'name: x\ntopology: []\n' })
  expect(answer.status).toBe(400)
  expect(await body(answer)).toMatchObject({ status: 400, message: '2:1: topology: expected an object, got []' })
  expect((await post('/v2/imports', { text: 'name: x\n', format: 'visio' })).status).toBe(400)
})

test('an appliance becomes a template that says which image to upload', async () => {
  const appliance = {
    name: `Firewall ${crypto.randomUUID().slice(0, 8)}`,
    category: 'firewall',
    qemu: { ram: 1024, adapters: 4, arch: 'x86_64' },
    images: [{ filename: 'fw.qcow2', version: '2', md5sum: 'ab'.repeat(16), filesize: 1000 }],
    versions: [{ name: '2', images: { hda_disk_image: 'fw.qcow2' } }],
  }
  const answer = await post('/v2/templates/import', { text: JSON.stringify(appliance) })
  expect(answer.status).toBe(201)
  const { template, ...more } = await body<ApplianceImport>(answer)
  expect(template).toMatchObject({
    name: `${appliance.name} 2`,
    template_type: 'machine-emulator',
    hda_disk_image: 'fw.qcow2',
  })
  expect(more).toEqual({
    version: '2',
    versions: ['2'],
    images: [
      {
        setting: 'hda_disk_image',
        filename: 'fw.qcow2',
        md5: 'ab'.repeat(16),
        size: 1000,
        from: null,
        image: 'fw.qcow2',
        is_missing: true,
      },
    ],
    left_out: [],
  })
  expect((await del(`/v2/templates/${template.template_id}`)).status).toBe(204)
  expect((await post('/v2/templates/import', { text: '{ "name": ' })).status).toBe(400)
})
