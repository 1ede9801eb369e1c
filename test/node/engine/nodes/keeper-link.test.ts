import { mkdir, rm, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { KeeperLink } from '../../../../runtime/node/engine/nodes/keeper-link.ts'
import { KeeperClient } from '../../../../runtime/node/keeper/client/client.ts'
import { freshDirectory } from '../../../support/directory.ts'

const quiet = () => {}
const log = { debug: quiet, info: quiet, warn: quiet, error: quiet }

/** A hold on a keeper of its own, and how often the end of one was told. */
async function open() {
  const data = await freshDirectory()
  const link = new KeeperLink(data, log)
  onTestFinished(() => link.close({ stop: true }))
  let losses = 0
  link.listen({
    onUnitExit: quiet,
    captureFailed: quiet,
    onUnresponsive: quiet,
    moved: quiet,
    answered: async () => {},
    onKeeperDeath: async () => void losses++,
  })
  await link.inventory()
  const kill = async () => {
    const client = await KeeperClient.connect(data)
    process.kill(client.pid, 'SIGKILL')
    await client.closed
  }
  return { link, kill, log: join(data, 'run/keeper.log'), losses: () => losses }
}

test('the end of a keeper is reported before any request to the next one', async () => {
  const { link, kill, losses } = await open()
  for (const count of [1, 2]) {
    await kill()
    const lossesAtAnswer = () => link.inventory().then(losses, () => undefined)
    await expect.poll(lossesAtAnswer).toBe(count)
  }
})

test('the end of a keeper is reported once, also when the next one starts much later', async () => {
  const { link, kill, log, losses } = await open()
  await rm(log)
  // Then none can be started.
  await mkdir(log)
  await kill()
  await expect.poll(() => link.isUp).toBe(false)
  const asked = await Promise.allSettled([link.inventory(), link.inventory(), link.inventory()])
  expect(asked.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
  expect(losses()).toBe(0)
  await rmdir(log)
  // Nobody has to ask for it.
  await expect.poll(() => link.isUp).toBe(true)
  await Promise.all([link.inventory(), link.inventory()])
  expect(losses()).toBe(1)
})
