import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { networkInterfaces } from 'node:os'
import { expect, onTestFinished, test } from 'vitest'
import { ip } from '../../../support/namespace.ts'
import { freePort } from '../../../support/ports.ts'
import { requireDevices, requireFastPath } from '../../../support/require.ts'
import { describeWith } from '../../../support/test-with.ts'
import { echoAt, nameServer, natLab, natService, type Outside, outside, requireLibslirp } from './nat-lab.ts'
import { RawGuest } from './raw-guest.ts'

const guest = { four: '192.168.122.50', six: 'fd12:3456:789a::50' } as const
const ipv6_prefix = 'fd12:3456:789a::/64'

/** Everything that could lead to the host itself, or to many. */
const tricks = ({ host, resolver, network }: Outside): string[] => [
  ...['127.0.0.1', '127.0.0.2', resolver, '0.0.0.0', '0.0.0.1', '255.255.255.255', '169.254.169.254', '224.0.0.1'],
  // The addresses of the nat itself, which libslirp has stand for the loopback and the resolver.
  ...['192.168.122.0', '192.168.122.1', '192.168.122.2', '192.168.122.3', '192.168.122.255'],
  // Those of the host, and the broadcast address of its network.
  ...[host.four, host.broadcast, network.replace('/29', ''), host.private, host.private.replace(/1$/, '255'), host.six],
  ...['::', '::1', '::ffff:7f00:1', '::7f00:1', '::ffff:7f00:2', '64:ff9b::7f00:1', '2002:7f00:1::1'],
  ...['fe80::1', 'ff02::1', 'ff0e::1', 'fe80::2', 'fe80::3'],
  ...['fd12:3456:789a::1', 'fd12:3456:789a::2', 'fd12:3456:789a::3'],
]

describeWith(
  requireLibslirp(),
  requireDevices(),
  requireFastPath(),
)('what guests of a nat reach', () => {
  test('does not include the host, by any address or protocol', async () => {
    const server = await outside()
    await nameServer(server)
    const heard = await listenEverywhere()
    await echoAt(server.space, heard.port)
    const lab = await natLab(await natService(server), { ipv6_prefix })
    const raw = await RawGuest.at(lab, guest.four, guest.six)
    await lab.service.call('POST', `${lab.nat}/start`)
    raw.answerArp()
    const own = Object.values(networkInterfaces()).flatMap((all = []) => all.map(({ address }) => address))
    for (const to of new Set([...tricks(server), ...own])) {
      raw.udp(to, heard.port, `to ${to}`)
      raw.connect(to, heard.port)
      if (!/^(192\.168\.122\.[12]|fd12:3456:789a::[12]|fe80::2)$/.test(to)) raw.ping(to)
    }
    // Frames are judged in their order: all have been by then.
    raw.udp(server.four, heard.port, 'allowed')
    const frames = await raw.until('allowed')
    expect(heard.got).toEqual([])
    const protocols = frames.map(protocolOf)
    // Neither echo replies nor connections; what is told is that it is prohibited.
    const replies = frames.filter((frame, index) => isEchoReply(frame, protocols[index] ?? 0))
    expect(replies).toEqual([])
    expect(frames.filter((frame, index) => protocols[index] === 6 && ((frame[47] ?? 0) & 0x12) === 0x12)).toEqual([])
  })

  test('does not include an address that the host gets while the nat runs', async () => {
    const server = await outside()
    const heard = await listenEverywhere()
    await echoAt(server.space, heard.port)
    const lab = await natLab(await natService(server))
    const raw = await RawGuest.at(lab, guest.four, guest.six)
    await lab.service.call('POST', `${lab.nat}/start`)
    raw.answerArp()
    const moving = server.spare
    await server.space.ip(`addr add ${moving}/32 dev lo`)
    raw.udp(moving, heard.port, 'there')
    await raw.until('there')
    await server.space.ip(`addr del ${moving}/32 dev lo`)
    await ip(`addr add ${moving}/32 dev lo`)
    onTestFinished(() => ip(`addr del ${moving}/32 dev lo`).then(() => {}))
    raw.udp(moving, heard.port, 'here')
    raw.udp(server.four, heard.port, 'allowed')
    await raw.until('allowed')
    expect(heard.got).toEqual([])
  })

  test('includes the addresses of nat.reach', async () => {
    const server = await outside()
    const heard = await listenEverywhere()
    const lab = await natLab(await natService(server, { 'nat.reach': ['127.0.0.1', server.network, '::1'] }), {
      ipv6_prefix,
    })
    const raw = await RawGuest.at(lab, guest.four, guest.six)
    await lab.service.call('POST', `${lab.nat}/start`)
    raw.answerArp()
    // The second address of the network stands for the loopback.
    raw.udp('192.168.122.2', heard.port, 'loopback')
    raw.udp(server.host.four, heard.port, 'named')
    raw.udp(server.host.private, heard.port, 'not named')
    raw.udp('fd12:3456:789a::2', heard.port, 'loopback6')
    await expect.poll(() => heard.got).toHaveLength(3)
    expect(heard.got.toSorted()).toEqual(['loopback', 'loopback6', 'named'])
  })

  test('includes no private address outside local mode', async () => {
    const server = await outside()
    const port = freePort()
    const other = server.private.replace(/2$/, '3')
    await echoAt(server.space, port)
    const lab = await natLab(
      await natService(server, { local: false, sandbox: 'off', 'nat.reach': [server.private] }),
      {
        ipv6_prefix,
      },
    )
    const raw = await RawGuest.at(lab, guest.four, guest.six)
    await server.space.ip(`addr add ${other}/32 dev lo`)
    await lab.service.call('POST', `${lab.nat}/start`)
    raw.answerArp()
    raw.udp(other, port, 'private')
    raw.udp(server.private, port, 'named')
    raw.udp(server.four, port, 'public')
    const frames = await raw.until('public')
    expect(frames.some((frame) => frame.includes('named'))).toBe(true)
    // The guest is told: administratively prohibited.
    expect(frames.filter((frame) => frame.includes('private')).map((frame) => [...frame.subarray(34, 36)])).toEqual([
      [3, 13],
    ])
  })
})

const typeOf = (frame: Buffer): number => frame.readUInt16BE(12)
const protocolOf = (frame: Buffer): number =>
  (typeOf(frame) === 0x86dd ? frame[20] : typeOf(frame) === 0x0800 ? frame[23] : 0) ?? 0
const isEchoReply = (frame: Buffer, protocol: number): boolean =>
  (protocol === 1 && frame[34] === 0) || (protocol === 58 && frame[54] === 129)

/** Listens at all addresses of this host, by UDP and TCP; what came. */
async function listenEverywhere(): Promise<{ readonly port: number; readonly got: string[] }> {
  const port = freePort()
  const got: string[] = []
  const socket = createSocket({ type: 'udp6', ipv6Only: false })
  socket.on('message', (message) => got.push(String(message)))
  socket.bind(port)
  await once(socket, 'listening')
  const listener = createServer((connection) => {
    got.push('a connection')
    connection.destroy()
  }).listen(port)
  await once(listener, 'listening')
  onTestFinished(() => {
    socket.close()
    listener.close()
  })
  return { port, got }
}
