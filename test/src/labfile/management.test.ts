import { describe, expect, test } from 'vitest'
import { documentOf } from '../../../src/labfile/document.ts'
import { LabFileError } from '../../../src/labfile/lab-file-error.ts'
import { withManagement } from '../../../src/labfile/management.ts'
import { readLabFile } from '../../../src/labfile/read.ts'
import { labFileText } from '../../../src/labfile/text.ts'

const file = `
lab: managed
nodes:
  web: { kind: container, image: busybox.tar, management: { address: 172.20.20.11, ports: ["8080:80", "127.0.0.2:8053:53/udp"] } }
  R1: { kind: machine, image: r1.img, adapters: 2 }
  away: { kind: container, image: busybox.tar, management: false }
  PC1: { kind: pc }
management: { network: 172.20.20.0/24 }
links:
  - [web, R1]
  - [R1:e2, PC1]
`

const node = (desired: Awaited<ReturnType<typeof readLabFile>>, name: string) =>
  desired.nodes.find((it) => it.name === name)

/** The messages of a file that is refused. */
async function faultsOf(text: string): Promise<string[]> {
  const error = await readLabFile(text).catch((it: unknown) => it)
  if (!(error instanceof LabFileError)) throw new Error(`the file is accepted: ${text}`)
  return error.diagnostics.map(
    ({ line, message, hint }) => `${line}: ${message}${hint === undefined ? '' : `; ${hint}`}`,
  )
}

test('every node that can be in it is at a port of a nat, with its first adapter', async () => {
  const desired = await readLabFile(file)
  const links = desired.links.map(({ ends }) =>
    ends.map((end) => `${end.node}:${end.adapter_number}/${end.port_number ?? ''}`).join(' '),
  )
  expect(links).toEqual(['web:0/0 management:0/', 'R1:0/0 management:0/', 'web:1/0 R1:1/0', 'R1:2/0 PC1:0/0'])
  expect(node(desired, 'management')).toMatchObject({
    kind: 'nat',
    properties: {
      subnet: '172.20.20.0/24',
      management: true,
      port_forwards: [
        { protocol: 'tcp', host_port: 8080, guest_port: 80, guest_address: '172.20.20.11' },
        { protocol: 'udp', host_address: '127.0.0.2', host_port: 8053, guest_port: 53, guest_address: '172.20.20.11' },
      ],
    },
  })
  expect(node(desired, 'web')?.properties).toMatchObject({
    adapters: 2,
    address: '172.20.20.11/24',
    gateway: '172.20.20.1',
    resolver: '172.20.20.1',
  })
  expect(node(desired, 'R1')?.properties).toMatchObject({ adapters: 3 })
  expect(node(desired, 'away')?.properties).toEqual({ image: 'busybox.tar' })
  expect(desired.links[0]?.ends[1]?.port).toEqual({ name: 'web', address: '172.20.20.11' })
})

test('an address that the file does not give follows from the name, whatever other nodes there are', async () => {
  const addressOf = async (nodes: string) =>
    node(await readLabFile(`{ lab: a, management: {}, nodes: { ${nodes} } }`), 'R7')?.management?.address
  const r7 = 'R7: { kind: container, image: a.tar }'
  const alone = await addressOf(r7)
  expect(alone).toMatch(/^172\.20\.20\.\d+$/)
  expect(await addressOf(`A: { kind: container, image: a.tar }, ${r7}, Z: { kind: container, image: a.tar }`)).toBe(
    alone,
  )
  const taken = await addressOf(`A: { kind: container, image: a.tar, management: ${alone} }, ${r7}`)
  expect(taken).not.toBe(alone)
})

test('a network is used to its last address', async () => {
  const nodes = Array.from({ length: 12 }, (_, number) => `n${number}: { kind: container, image: a.tar }`).join(', ')
  const desired = await readLabFile(`{ lab: a, management: { network: 10.0.0.0/28 }, nodes: { ${nodes} } }`)
  const addresses = desired.nodes.flatMap(({ management }) => management?.address ?? [])
  expect(new Set(addresses)).toEqual(new Set(Array.from({ length: 12 }, (_, number) => `10.0.0.${number + 3}`)))
})

test('a file that is written says the same in the same words', async () => {
  const desired = await readLabFile(file)
  const written = documentOf(desired)
  expect(written.management).toEqual({ network: '172.20.20.0/24' })
  expect(written.segments).toBe(undefined)
  expect(written.nodes).toMatchObject({
    web: { management: { address: '172.20.20.11', ports: ['8080:80', '127.0.0.2:8053:53/udp'] } },
    R1: { adapters: 2 },
    away: { management: false },
  })
  expect(Object.keys(written.nodes.web ?? {})).not.toContain('adapters')
  const again = await readLabFile(labFileText(written))
  expect(again.nodes.map(({ properties }) => properties)).toEqual(desired.nodes.map(({ properties }) => properties))
})

test('a lab keeps the section when a node was renamed or deleted: the nat knows it by its former name', async () => {
  const segment = (guests: string, members: string) => `
lab: l
nodes:
  R9: { kind: machine, platform: x86_64, adapters: 2 }
segments:
  net:
    kind: nat
    management: true
    subnet: 10.0.0.0/24
    port_forwards:
      - { protocol: tcp, host_port: 8080, guest_port: 80, guest_address: 10.0.0.20 }
      - { protocol: tcp, host_port: 8081, guest_port: 80, guest_address: 10.0.0.21 }
    guests: [${guests}]
    members: [${members}]
`
  const r1 = '{ port_number: 0, name: R1, address: 10.0.0.20 }'
  const r2 = '{ port_number: 1, name: R2, address: 10.0.0.21 }'
  const desired = await readLabFile(segment(`${r1}, ${r2}`, '{ end: R9:e0, port: 0 }'))
  const written = documentOf(withManagement(desired))
  expect(written.segments).toBe(undefined)
  expect(written.management).toEqual({ network: '10.0.0.0/24', name: 'net' })
  expect(written.nodes.R9).toMatchObject({ management: { address: '10.0.0.20', ports: ['8080:80'] } })
  await expect(readLabFile(labFileText(written))).resolves.toMatchObject({ management: 'net' })
  // A guest whose link is impaired is not a part of what a section can say.
  const impaired = await readLabFile(
    segment(r1, '{ end: R9:e0, port: 0, down: true }').replace(/ *- .*10.0.0.21.*\n/, ''),
  )
  expect(documentOf(withManagement(impaired)).segments).toMatchObject({ net: { management: true } })
})

test.each([
  ['more guests than it has addresses', Array.from({ length: 20 }, () => '10.0.0.5')],
  ['two guests with one address', ['10.0.0.5', '10.0.0.5']],
  ['a guest whose address is not in it', ['10.0.0.5', '10.0.9.9']],
  ['a guest with the address of its gateway', ['10.0.0.1']],
])('a nat stays a segment that has %s', async (_, addresses) => {
  const desired = await readLabFile(`
lab: l
nodes: { ${addresses.map((_, at) => `n${at}: { kind: machine, platform: x86_64 }`).join(', ')} }
segments:
  net:
    kind: nat
    management: true
    subnet: 10.0.0.0/28
    members: [${addresses.map((_, at) => `{ end: n${at}, port: ${at} }`).join(', ')}]
`)
  // No lab file gives a nat such guests; a project that is imported may have any.
  const guests = addresses.map((address, port_number) => ({ port_number, name: `n${port_number}`, address }))
  const nodes = desired.nodes.map((it) =>
    it.name === 'net' ? { ...it, properties: { ...it.properties, guests } } : it,
  )
  const written = documentOf(withManagement({ ...desired, nodes }))
  expect(written.management).toBe(undefined)
  expect(written.segments).toMatchObject({ net: { management: true, subnet: '10.0.0.0/28' } })
})

describe('a file is refused', () => {
  const a = 'a: { kind: container, image: a.tar'
  const b = 'b: { kind: container, image: a.tar'
  test.each([
    [`{ lab: l, nodes: { ${a}, management: 172.20.20.5 } } }`, 'the lab has no management network'],
    [`{ lab: l, management: { network: 10.0.0.0/30 }, nodes: { ${a} } } }`, 'is not a network address with a prefix'],
    [`{ lab: l, management: {}, nodes: { ${a}, management: 172.20.21.5 } } }`, 'is not an address for a node'],
    [`{ lab: l, management: {}, nodes: { ${a}, management: 172.20.20.1 } } }`, 'addresses are 172.20.20.3 to'],
    [
      `{ lab: l, management: {}, nodes: { ${a}, management: 172.20.20.5 }, ${b}, management: 172.20.20.5 } } }`,
      '"a" already has the address 172.20.20.5',
    ],
    [`{ lab: l, management: {}, nodes: { management: { kind: pc } } }`, 'of the management network is taken by'],
    [
      `{ lab: l, management: {}, nodes: { ${a} }, A_: { kind: container, image: a.tar } } }`,
      'would both have the name A',
    ],
    [
      `{ lab: l, management: {}, nodes: { ${a}, management: { ports: ["80:80"] } }, ${b}, management: { ports: ["80:1"] } } } }`,
      'port 80 of the host already leads to "a"',
    ],
    [
      `{ lab: l, management: {}, nodes: { ${a}, management: { ports: ["80:80"] } }, ${b}, management: { ports: ["0.0.0.0:80:1"] } } } }`,
      'port 80 of the host already leads to "a"',
    ],
    [`{ lab: l, management: {}, nodes: { ${a}, management: { ports: ["70000:80"] } } } }`, 'there is no port 70000'],
    [`{ lab: l, management: {}, nodes: { ${a}, management: { ports: ["80"] } } } }`, 'expected HOST:NODE'],
    [
      `{ lab: l, management: {}, nodes: { ${a} }, ${b} } }, links: [[a:eth0, b]] }`,
      'a:eth0 is its port in the management',
    ],
    [`{ lab: l, management: {}, nodes: { ${a}, adapters: 64 } } }`, 'at most 64 adapters'],
    [
      `{ lab: l, management: {}, nodes: { ${a}, address: 10.0.0.1/24 } } }`,
      'address is that of the management network',
    ],
    [
      `{ lab: l, management: {}, nodes: { p: { kind: pc, management: 172.20.20.5 } } }`,
      'of kind pc has no "management"',
    ],
  ])('%s', async (text, message) => {
    expect((await faultsOf(text)).join('\n')).toContain(message)
  })

  test('that forwards more ports than a nat can', async () => {
    const ports = (node: number) =>
      Array.from({ length: 64 }, (_, port) => `"${1000 + 64 * node + port}:80"`).join(', ')
    const node = (number: number) =>
      `n${number}: { kind: container, image: a.tar, management: { ports: [${ports(number)}] } }`
    const text = `{ lab: a, management: {}, nodes: { ${[0, 1, 2, 3, 4].map(node).join(', ')} } }`
    expect(await faultsOf(text)).toEqual(['1: the nodes have 320 ports of the host, expected at most 256'])
  })

  test('whose network is too small for its nodes', async () => {
    const nodes = Array.from({ length: 13 }, (_, number) => `n${number}: { kind: container, image: a.tar }`).join(', ')
    const text = `{ lab: a, management: { network: 10.0.0.0/28 }, nodes: { ${nodes} } }`
    expect(await faultsOf(text)).toEqual(['1: the management network 10.0.0.0/28 has 12 addresses for 13 nodes'])
  })
})
