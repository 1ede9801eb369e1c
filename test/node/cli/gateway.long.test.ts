import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Compute } from '../../../src/client/patchbay.ts'
import { breakingWay } from '../../support/breaking-way.ts'
import { CommandLine } from '../../support/command-line.ts'
import { GatewayLab } from '../../support/gateway-lab.ts'

const lab = GatewayLab.forAll()

/** PC1 is on a compute with an address, PC2 on one that has dialled out. */
const overTwo = (name: string): string => `lab: ${name}
nodes:
  PC1: { kind: pc, compute: a, config: { text: ip 10.0.0.1/24 } }
  PC2: { kind: pc, compute: ${lab.farId}, config: { text: ip 10.0.0.2/24 } }
  PC3: { kind: pc, compute: ${lab.farId}, config: { text: ip 10.0.0.3/24 } }
segments:
  lan: { kind: switch, compute: ${lab.farId}, members: [PC2, PC3] }
checks:
  - { from: PC2, ping: PC3 }
`

test('commands work through a gateway, on computes with an address and behind a tunnel', async () => {
  const patchbay = await CommandLine.of({ server: lab.gateway.url })
  await patchbay.file('over.lab.yaml', overTwo('over'))
  const up = await patchbay.run(['up'])
  expect(up).toMatchObject({ code: 0, out: expect.stringContaining('started 3 nodes') })
  // The gateway is no service of this user, which a command could end.
  expect(up.out).not.toContain('service stop')
  expect((await patchbay.run(['up'])).out).toContain('nothing to do')
  expect((await patchbay.run(['ls'])).out).toMatch(/over +running +3 of 3\n/)
  const { out } = await patchbay.run(['inspect', 'over'])
  expect(out).toContain('over: 3 of 3 nodes running, ')
  const { computes } = await patchbay.json<{ computes: Compute[] }>(['computes', 'ls'])
  const nameOf = (id: string) => computes.find(({ compute_id }) => compute_id === id)?.name
  expect(out).toMatch(new RegExp(`PC1 +pc +running +telnet \\d+ +${nameOf('a')}\n`))
  expect(out).toMatch(new RegExp(`PC2 +pc +running +telnet \\d+ +${nameOf(lab.farId)}\n`))

  // The nodes were made at the same time, by computes that know nothing of each other.
  const macOf = async (node: string) => /MAC +(\S+)/.exec((await patchbay.run(['inspect', `over/${node}`])).out)?.[1]
  expect(new Set(await Promise.all(['PC1', 'PC2', 'PC3'].map(macOf))).size).toBe(3)

  for (const [node, address] of [
    ['PC1', '10.0.0.1'],
    ['PC2', '10.0.0.2'],
  ]) {
    const typed = await patchbay.run(['exec', `over/${node}`, 'show ip', '--expect', `${address}/24`])
    expect(typed).toMatchObject({ code: 0, out: expect.stringContaining(`${address}/24`) })
    expect((await patchbay.run(['console', `over/${node}`], { input: 'show ip\n' })).out).toContain(`${address}/24`)
  }

  const capture = patchbay.start(['capture', 'over/PC2:e0', '-w', 'out.pcap', '-c', '2'])
  const captured = once(capture, 'exit')
  await once(capture.stderr, 'data')
  await patchbay.run(['exec', 'over/PC2', 'ping 10.0.0.3 -c 1', '--expect', 'bytes from 10.0.0.3'])
  expect(await captured).toEqual([0, null])
  expect((await readFile(join(patchbay.home, 'out.pcap'))).length).toBeGreaterThan(24 + 2 * 16)

  expect(await patchbay.run(['link', 'over/PC2:e0', '--delay', '20ms'])).toMatchObject({ code: 0 })
  expect((await patchbay.run(['complete', '--', 'inspect', 'over/'])).out).toContain('over/PC2')
  expect(await patchbay.run(['down'])).toMatchObject({ code: 0, out: expect.stringContaining('over: stopped') })
  expect(await patchbay.run(['down', '--delete', '--yes'])).toMatchObject({ code: 0 })
})

test('images are pushed through a gateway to all computes, also when the connection is lost', async () => {
  // First when the command asks what is stored.
  const server = await breakingWay(lab.gateway.url, ['bytes */', 5 << 20, 23 << 20])
  const patchbay = await CommandLine.of({ server })
  const disk = Buffer.concat([Buffer.from('QFI\xfb', 'latin1'), randomBytes(17 << 20)])
  await writeFile(join(patchbay.home, 'disk.qcow2'), disk)
  expect(await patchbay.run(['images', 'push', 'disk.qcow2'])).toMatchObject({ code: 0 })
  for (const { data } of lab.computes)
    expect((await readFile(join(data, 'images/machine-emulator/disk.qcow2'))).equals(disk)).toBe(true)
  expect(await patchbay.json(['images', 'push', 'disk.qcow2'])).toMatchObject({ images: [{ sent: 0 }] })
  expect(await patchbay.run(['images', 'rm', 'disk.qcow2'])).toMatchObject({ code: 0 })
})

test('a lab is tested through a gateway, and nothing of it is left on a compute', async () => {
  const patchbay = await CommandLine.of({ server: lab.gateway.url })
  await patchbay.file('tested.lab.yaml', overTwo('tested'))
  const { code, out } = await patchbay.run(['test'])
  expect({ code, out }).toMatchObject({ code: 0, out: expect.stringContaining('1 lab, 1 check: all ok') })
  for (const compute of lab.computes)
    expect(await compute.call('GET', '/v2/compute/projects')).not.toContainEqual(
      expect.objectContaining({ name: expect.stringContaining('tested') }),
    )
})
