import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Compute } from '../../src/model/compute.ts'
import type { LabLink } from '../../src/model/lab/link.ts'
import { answered, labOver, linked, types } from '../support/lab-over-computes.ts'
import { hangMs } from '../support/limits.ts'
import type { Namespace } from '../support/namespace.ts'
import { requireDevices, requireProgram } from '../support/require.ts'
import { TestService } from '../support/service.ts'
import { Internet, Site, serviceIn } from '../support/sites.ts'
import { testWith } from '../support/test-with.ts'

const test = testWith(requireDevices(), requireProgram('iptables'))

const tokens = ['the-join-token-of-a-1', 'the-join-token-of-b-1']

/** A gateway on this host. */
const gatewayAt = (): Promise<TestService> =>
  TestService.start({
    ...{ gateway: true, host: Internet.address, insecure: true },
    ...{ 'fleet.join_tokens': tokens, 'rate_limit.per_s': 0 },
  })

/** Starts computes on these hosts that join the gateway; their ids. All have the same ports. */
async function joined(gateway: TestService, spaces: readonly Namespace[], more: Record<string, unknown> = {}) {
  const ranges = {
    udp_port_range: [40_000, 40_009],
    console_port_range: [41_000, 41_009],
    vnc_port_range: [42_000, 42_001],
  }
  const services = await Promise.all(
    spaces.map((space, index) =>
      serviceIn(space, {
        ...{ 'pc.engine': 'embedded', insecure: true, ...ranges, ...more },
        ...{ 'join.url': gateway.url, 'join.token': tokens[index] },
      }),
    ),
  )
  const ids = await Promise.all(
    services.map(async ({ data }) => (await readFile(join(data, 'compute-id'), 'utf8')).trim()),
  )
  const connected = async () =>
    (await gateway.call<Compute[]>('GET', '/v2/computes')).filter((it) => it.connected).map((it) => it.compute_id)
  await expect.poll(async () => (await connected()).toSorted(), { timeout: hangMs }).toEqual(ids.toSorted())
  return ids
}

interface Wire {
  readonly rhost: string
  readonly rport: number
}

/** Links two pcs of a lab over the computes, has them ping, and gives what each end sends to. */
async function pinged(gateway: TestService, ids: readonly string[]): Promise<readonly [Wire, Wire]> {
  const lab = await labOver(gateway, ids)
  const { link_id } = await linked(gateway, lab, 'PC1', 'PC2')
  await gateway.call('POST', `${lab}/nodes/start`)
  await types(gateway, `${lab}/nodes/PC1`, { text: 'ping 10.0.0.2 -c 2 -i 50\r', shows: answered })
  const link = () => gateway.call<LabLink>('GET', `${lab}/links/${link_id}`)
  await expect.poll(link, { timeout: hangMs }).toMatchObject({ verdict: 'ok' })
  return [await nioOf(gateway, lab, 'PC1'), await nioOf(gateway, lab, 'PC2')]
}

async function nioOf(gateway: TestService, lab: string, node: string): Promise<Wire> {
  const project = lab.replace('/v2/projects', '/v2/compute/projects')
  const { node_id } = await gateway.call<{ node_id: string }>('GET', `${lab}/nodes/${node}`)
  return gateway.call<Wire>('GET', `${project}/pc/nodes/${node_id}/adapters/0/ports/0/nio`)
}

test('two computes behind NATs of their own are linked by the addresses of their routers', async () => {
  const internet = await Internet.make()
  const sites = [await Site.make(internet, 'same port'), await Site.make(internet, 'same port')]
  const spaces = await Promise.all(sites.map((site) => site.host()))
  // Both have the same private address, and the same port.
  expect(spaces.map(({ address }) => address)).toEqual(['192.168.1.10', '192.168.1.10'])
  const gateway = await gatewayAt()
  const ids = await joined(
    gateway,
    spaces.map(({ space }) => space),
  )
  const [one, two] = await pinged(gateway, ids)
  expect([one.rhost, two.rhost]).toEqual([sites[1]?.address, sites[0]?.address])
})

test('a link through NATs works again after both routers lost its flow, although one end sends no frames', async () => {
  const internet = await Internet.make()
  const sites = [await Site.make(internet, 'same port'), await Site.make(internet, 'same port')]
  const spaces = await Promise.all(sites.map((site) => site.host()))
  const gateway = await gatewayAt()
  const ids = await joined(
    gateway,
    spaces.map(({ space }) => space),
  )
  const lab = await labOver(gateway, ids)
  await linked(gateway, lab, 'PC1', 'PC2')
  await gateway.call('POST', `${lab}/nodes/start`)
  const ping = (count: number, shows: RegExp) =>
    types(gateway, `${lab}/nodes/PC1`, { text: `ping 10.0.0.2 -c ${count} -i 500 -w 400\r`, shows })
  await ping(2, answered)
  await Promise.all(sites.map((site) => site.forgetFlows()))
  // Until the other end sends by itself, its router drops what comes.
  await ping(200, /timeout[\s\S]*bytes from 10\.0\.0\.2/)
})

test('two computes of one network are linked in it, though the gateway sees both come from their router', async () => {
  const internet = await Internet.make()
  const site = await Site.make(internet, 'random port')
  const [a, b] = [await site.host(), await site.host()]
  const gateway = await gatewayAt()
  const [one, two] = await pinged(gateway, await joined(gateway, [a.space, b.space]))
  expect([one.rhost, two.rhost]).toEqual([b.address, a.address])
})

test('a link works through a NAT with another port for each flow, when the other compute has no NAT', async () => {
  const internet = await Internet.make()
  const site = await Site.make(internet, 'random port')
  const [a, b] = [await site.host(), await internet.host()]
  const gateway = await gatewayAt()
  const [one, two] = await pinged(gateway, await joined(gateway, [a.space, b.space]))
  expect([one.rhost, two.rhost]).toEqual([b.address, site.address])
  expect(two.rport).not.toBe(40_000)
})

test('when no address works, 409 says which ones each compute has tried, and nothing is left', async () => {
  const internet = await Internet.make()
  const sites = [await Site.make(internet, 'random port'), await Site.make(internet, 'random port')]
  const spaces = await Promise.all(sites.map((site) => site.host()))
  const gateway = await gatewayAt()
  const ids = await joined(
    gateway,
    spaces.map(({ space }) => space),
  )
  const lab = await labOver(gateway, ids)
  const answer = await gateway.fetch(`${lab}/links`, {
    method: 'POST',
    body: JSON.stringify({ nodes: ['PC1:e0', 'PC2:e0'] }),
  })
  const { message } = (await answer.json()) as { message: string }
  expect([answer.status, message]).toEqual([409, expect.stringContaining('no UDP passes between the computes')])
  // The second compute had offered 40000, too.
  for (const ends of [sites, spaces])
    for (const [index, { address }] of ends.entries()) expect(message).toContain(`${address}:${40_000 + index}`)
  expect(message).toContain('join.addresses')
  for (const id of ids)
    expect(await gateway.call('GET', `/v2/computes/${id}/network/ports`)).toMatchObject({ udp_ports: [] })
  expect(await gateway.call('GET', `${lab}/links`)).toEqual([])
})
