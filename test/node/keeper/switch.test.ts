import { createSocket, type Socket } from 'node:dgram'
import { expect, onTestFinished, test } from 'vitest'
import { Switch } from '../../../runtime/node/keeper/switch/switch.ts'

const nio = (lport: number, rport: number, suspend = false) => ({
  type: 'nio_udp' as const,
  lport,
  rport,
  rhost: '127.0.0.1',
  suspend,
})

/** A UDP socket that collects what it gets. */
async function peer(
  port: number,
  to?: number,
): Promise<{ socket: Socket; got: string[]; port: number; next: () => Promise<string> }> {
  const socket = createSocket('udp4')
  onTestFinished(() => void socket.close())
  await new Promise<void>((resolve) => socket.bind(port, '127.0.0.1', resolve))
  if (to !== undefined) await new Promise<void>((resolve) => socket.connect(to, '127.0.0.1', resolve))
  const got: string[] = []
  let wake = () => {}
  socket.on('message', (message) => {
    got.push(message.toString())
    wake()
  })
  return {
    socket,
    got,
    port: socket.address().port,
    async next() {
      while (got.length === 0) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
      return got.shift() ?? ''
    },
  }
}

/** A switch with a guest on each of the ports. */
async function lan(...keys: readonly string[]) {
  const it = new Switch()
  onTestFinished(() => it.closeAll())
  const guests = await Promise.all(
    keys.map(async (key) => {
      const guest = await peer(0)
      const { switch_port } = await it.open(key, guest.port)
      await new Promise<void>((resolve) => guest.socket.connect(switch_port, '127.0.0.1', resolve))
      return guest
    }),
  )
  return { lan: it, guests: guests as [(typeof guests)[0], (typeof guests)[0]] }
}

test('frames go to the peer of a NIO and come back, from the peer alone', async () => {
  const { lan: it, guests } = await lan('a')
  const remote = await peer(42_402)
  const stranger = await peer(0)
  await it.attach('a', nio(42_401, 42_402))
  guests[0].socket.send('out')
  expect(await remote.next()).toBe('out')
  stranger.socket.send('forged', 42_401, '127.0.0.1')
  remote.socket.send('in', 42_401, '127.0.0.1')
  expect(await guests[0].next()).toBe('in')
})

test('two ends in one switch are joined, and parted when one of them goes elsewhere', async () => {
  const { lan: it, guests } = await lan('a', 'b')
  const [a, b] = guests
  await it.attach('a', nio(42_411, 42_412))
  await it.attach('b', nio(42_412, 42_411))
  a.socket.send('one')
  expect(await b.next()).toBe('one')
  b.socket.send('two')
  expect(await a.next()).toBe('two')
  const elsewhere = await peer(42_414)
  await it.attach('b', nio(42_413, 42_414))
  b.socket.send('three')
  expect(await elsewhere.next()).toBe('three')
  a.socket.send('lost')
  elsewhere.socket.send('four', 42_413, '127.0.0.1')
  expect(await b.next()).toBe('four')
})

test('a suspended link carries nothing, either way', async () => {
  const { lan: it, guests } = await lan('a', 'b')
  const [a, b] = guests
  await it.attach('a', nio(42_421, 42_422))
  await it.attach('b', nio(42_422, 42_421, true))
  await Promise.all([a, b].map(({ socket }) => new Promise((resolve) => socket.send('lost', resolve))))
  // They are in the sockets of the switch now; it reads them in the next turns of the event loop.
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve))
  await it.attach('b', nio(42_422, 42_421))
  a.socket.send('there')
  b.socket.send('here')
  expect([await b.next(), await a.next()]).toEqual(['there', 'here'])
})

test('a local port that is taken is told, and what was attached stays', async () => {
  const { lan: it, guests } = await lan('a', 'b')
  const [a] = guests
  const remote = await peer(42_432)
  const other = await peer(42_433)
  await it.attach('a', nio(42_431, remote.port))
  await it.attach('b', nio(42_434, 1))
  await expect(it.attach('a', nio(other.port, remote.port))).rejects.toMatchObject({ code: 'port_taken' })
  await expect(it.attach('a', nio(42_434, remote.port))).rejects.toMatchObject({ code: 'port_taken' })
  a.socket.send('still')
  expect(await remote.next()).toBe('still')
  expect(it.list().find(({ key }) => key === 'a')?.nio).toEqual(nio(42_431, 42_432))
})

test('the same local port can lead elsewhere, and is free when the NIO is gone', async () => {
  const { lan: it, guests } = await lan('a', 'b')
  const [first, second] = [await peer(42_442), await peer(42_443)]
  await it.attach('a', nio(42_441, first.port))
  await it.attach('a', nio(42_441, second.port))
  guests[0].socket.send('to the second')
  expect(await second.next()).toBe('to the second')
  await it.detach('a')
  await it.attach('b', nio(42_441, first.port))
  guests[1].socket.send('to the first')
  expect(await first.next()).toBe('to the first')
})

test('a peer that is not there harms nobody', async () => {
  const { lan: it, guests } = await lan('a')
  await it.attach('a', nio(42_451, 42_452))
  for (let round = 0; round < 50; round++) guests[0].socket.send('nobody')
  const late = await peer(42_452)
  guests[0].socket.send('first refused')
  guests[0].socket.send('now')
  expect(['first refused', 'now', 'nobody']).toContain(await late.next())
})

test('opening a port again gives it back as it is', async () => {
  const { lan: it, guests } = await lan('a')
  await it.attach('a', nio(42_461, 42_462))
  const before = it.list()
  await it.open('a', guests[0].port)
  expect(it.list()).toEqual(before)
})

test('a suspended link to another machine carries nothing, either way', async () => {
  const { lan: it, guests } = await lan('a')
  const [a] = guests
  const remote = await peer(42_472)
  await it.attach('a', nio(42_471, 42_472, true))
  await Promise.all([
    new Promise((resolve) => a.socket.send('lost', resolve)),
    new Promise((resolve) => remote.socket.send('lost', 42_471, '127.0.0.1', resolve)),
  ])
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve))
  await it.attach('a', nio(42_471, 42_472))
  a.socket.send('there')
  remote.socket.send('here', 42_471, '127.0.0.1')
  expect([await remote.next(), await a.next()]).toEqual(['there', 'here'])
})

test("only the guest's own datagrams go from its port to the link", async () => {
  const { lan: it, guests } = await lan('a')
  const remote = await peer(42_482)
  const stranger = await peer(0)
  await it.attach('a', nio(42_481, 42_482))
  const { switch_port } = await it.open('a', guests[0].port)
  await new Promise((resolve) => stranger.socket.send('forged', switch_port, '127.0.0.1', resolve))
  guests[0].socket.send('genuine')
  expect(await remote.next()).toBe('genuine')
})

test('a port that is closed gives its local port back, parts the link, and is unknown from then on', async () => {
  const { lan: it, guests } = await lan('a', 'b')
  await it.attach('a', nio(42_491, 42_492))
  await it.attach('b', nio(42_492, 42_491))
  await it.close('b')
  await it.close('b')
  await expect(it.attach('b', nio(42_492, 42_491))).rejects.toMatchObject({ code: 'unknown_key' })
  const outside = await peer(42_492)
  guests[0].socket.send('to whoever has it now')
  expect(await outside.next()).toBe('to whoever has it now')
})
