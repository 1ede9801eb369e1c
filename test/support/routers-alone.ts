import { createServer, type Server } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll } from 'vitest'

/** The most that the other files with routers take together, ms. */
const turnMs = 280_000

/**
 * Has the test file wait until no other one has routers: all programs of a user meet in one directory, and what one service
 * has there makes another one choose other ids.
 */
export function runRoutersAlone(): void {
  let lock: Server | undefined
  beforeAll(async () => {
    for (;;) {
      lock = await take()
      if (lock !== undefined) return
      await delay(50)
    }
  }, turnMs)
  afterAll(() => void lock?.close())
}

/** A name without a file, which is free again however the process ends. */
function take(): Promise<Server | undefined> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(undefined))
    server.listen({ path: '\0patchbay-test-routers' }, () => resolve(server))
  })
}
