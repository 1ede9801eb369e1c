import { once } from 'node:events'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, onTestFinished, test, vi } from 'vitest'
import { KeeperClient } from '../../../../runtime/node/keeper/client/client.ts'
import { protocolVersion } from '../../../../runtime/node/keeper/protocol/protocol.ts'
import { freshDirectory } from '../../../support/directory.ts'

/** A client of a keeper that answers `hello`, and other requests when the test does. */
async function slowKeeper() {
  const directory = await freshDirectory()
  let heard: (answer: (what: object) => void) => void = () => {}
  const server = createServer((socket) => {
    socket.on('error', () => {})
    createInterface({ input: socket }).on('line', (line) => {
      const { id, op } = JSON.parse(line) as { id: number; op: string }
      const answer = (what: object) => void socket.write(`${JSON.stringify({ id, ...what })}\n`)
      if (op !== 'hello') return heard(answer)
      answer({ result: { protocol: protocolVersion, version: '1', pid: 1, packet_path: 'fast' } })
    })
  }).listen(join(directory, 'keeper.sock'))
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const client = await KeeperClient.open(directory)
  onTestFinished(() => client.disconnect())
  const next = () =>
    new Promise<(what: object) => void>((resolve) => {
      heard = resolve
    })
  return { client, next }
}

test('a further console waits as long as the keeper does for the start of its command', async () => {
  const { client, next } = await slowKeeper()
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const run = async () => {
    const request = next()
    const console = client.attach('console.run', { key: 'container:1', words: ['sh'] })
    return { console, answer: await request }
  }
  const slow = await run()
  vi.advanceTimersByTime(20_000)
  slow.answer({ result: {} })
  ;(await slow.console).destroy()
  const hanging = await run()
  vi.advanceTimersByTime(25_000)
  await expect(hanging.console).rejects.toMatchObject({ code: 'no_answer' })
})
