import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { AttachedSpec } from '../../../../runtime/node/keeper/protocol/protocol.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { emptyKeeper, type TestKeeper } from '../../../support/keeper.ts'
import { freePort } from '../../../support/ports.ts'

const key = 'hypervisor:1'

/** The serial port of a VM of another program: it greets, and gives back what is typed, in capitals. */
async function serialPort(place: { port: number } | { path: string }): Promise<{ server: Server; clients: Socket[] }> {
  const clients: Socket[] = []
  const server = createServer((socket) => {
    clients.push(socket)
    socket.on('error', () => {})
    socket.write('login: ')
    socket.on('data', (bytes) => socket.write(bytes.toString().toUpperCase()))
  })
  server.listen({ host: '127.0.0.1', ...place })
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    for (const client of clients) client.destroy()
  })
  return { server, clients }
}

async function attach(place: Pick<AttachedSpec, 'port' | 'path'>, readyMs = 5000) {
  const keeper = await emptyKeeper()
  const { run } = await keeper.client.call('unit.start', {
    key,
    run: { type: 'attached', ...place, ready_ms: readyMs },
  })
  return { ...keeper, run }
}

/** The console of the unit, with what it has shown so far. */
async function consoleOf(client: TestKeeper['client']) {
  const socket = await client.attach('console.attach', { key })
  onTestFinished(() => void socket.destroy())
  let shown = ''
  socket.on('data', (bytes) => (shown += String(bytes))).resume()
  return {
    type: (text: string) => socket.write(text),
    shows: (text: string) => expect.poll(() => shown).toContain(text),
  }
}

test.for(['port', 'path'] as const)(
  'the console of a guest is its serial port, at a %s that appears later',
  async (type) => {
    const place = type === 'port' ? { port: freePort() } : { path: join(await freshDirectory(), 'serial') }
    const { client, exit } = await attach(place)
    const console = await consoleOf(client)
    const { server, clients } = await serialPort(place)
    await console.shows('login: ')
    console.type('root')
    await console.shows('ROOT')

    server.close()
    clients[0]?.destroy()
    expect(await exit()).toMatchObject({ key, exit: { code: 0, requested: false, last_words: 'login: ROOT' } })
    expect((await client.call('inventory', {})).units).toMatchObject([{ key, pid: 0, exit: { code: 0 } }])
  },
)

test('a guest that restarts has not ended', async () => {
  const port = freePort()
  const { client } = await attach({ port })
  const { clients } = await serialPort({ port })
  const console = await consoleOf(client)
  await console.shows('login: ')
  clients[0]?.destroy()
  await console.shows('login: login: ')
})

test('a serial port that never appears counts as ended after the timeout', async () => {
  const { exit } = await attach({ port: freePort() }, 100)
  expect(await exit()).toMatchObject({ key, exit: { code: null, requested: false } })
})

test('a serial port is closed at once', async () => {
  const port = freePort()
  const { clients } = await serialPort({ port })
  const { client } = await attach({ port })
  await (await consoleOf(client)).shows('login: ')
  const closed = once(clients[0] as Socket, 'close')
  expect(await client.call('unit.stop', { key, grace_ms: 60_000 })).toMatchObject({ exit: { requested: true } })
  await closed
  await expect(client.call('console.attach', { key })).rejects.toMatchObject({ code: 'not_running' })
})

test('a serial port may still be awaited when it is closed', async () => {
  const { client } = await attach({ port: freePort() }, 60_000)
  expect(await client.call('unit.stop', { key, grace_ms: 60_000 })).toMatchObject({ exit: { requested: true } })
})
