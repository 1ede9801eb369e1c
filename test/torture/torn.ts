import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Random } from './random.ts'
import type { Victim } from './service.ts'
import type { Tally } from './tally.ts'

/** Connections that break, send half of what they said, or do not read. */
export class Torn {
  readonly #victim: Victim
  readonly #random: Random
  readonly #tally: Tally
  readonly #slow = new Set<Socket>()

  constructor(victim: Victim, random: Random, tally: Tally) {
    this.#victim = victim
    this.#random = random
    this.#tally = tally
  }

  async run(signal: AbortSignal, paths: () => readonly string[]): Promise<void> {
    while (!signal.aborted) {
      this.#one(paths())
      await delay(this.#random.between(10, 150))
    }
    for (const socket of this.#slow) socket.destroy()
  }

  #one(paths: readonly string[]): void {
    if (!this.#victim.isUp) return
    const random = this.#random
    const { hostname, port, host } = this.#victim.url
    const socket = connect(Number(port), hostname)
    socket.on('error', () => {})
    this.#tally.tried('torn connections')
    const upload = `${random.one(paths)}/files/torn-${random.below(3)}`
    const head = (method: string, path: string, more: string) =>
      `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/octet-stream\r\n${more}\r\n`
    const end = () => (random.next() < 0.5 ? socket.resetAndDestroy() : socket.destroy())
    switch (random.below(6)) {
      case 0:
        socket.write('GET /v2/compute/version HT')
        break
      case 1:
        socket.write(`${head('POST', '/v2/compute/projects', 'Content-Length: 1000\r\n')}{"name": "ha`)
        break
      case 2:
        socket.write(head('POST', upload, 'Content-Length: 1000000\r\n'))
        socket.write(Buffer.alloc(random.below(400_000), 'torn'))
        break
      case 3:
        socket.write(head('POST', upload, 'Transfer-Encoding: chunked\r\n'))
        socket.write(`1000\r\n${'x'.repeat(4096)}\r\n`)
        break
      case 4:
        socket.write(random.uuid())
        break
      default:
        // A reader that reads nothing: many answers for it pile up.
        socket.pause()
        for (let request = 0; request < 50; request++) socket.write(head('GET', '/openapi.json', ''))
        this.#slow.add(socket)
        if (this.#slow.size > 8) {
          const [oldest] = this.#slow
          if (oldest !== undefined) this.#slow.delete(oldest)
          oldest?.destroy()
        }
        return
    }
    setTimeout(end, random.between(0, 300))
  }
}
