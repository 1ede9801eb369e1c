import { setTimeout as delay } from 'node:timers/promises'
import type { Random } from './random.ts'
import type { Victim } from './service.ts'
import type { Tally } from './tally.ts'

const fine = new Set([200, 201, 204, 400, 404, 408, 409, 413, 429, 503, 507])

/** Requests for the same few nodes that get in each other's way; each must have an answer that makes sense. */
export class Conflicts {
  readonly #victim: Victim
  readonly #random: Random
  readonly #tally: Tally
  readonly #project: string
  readonly #ids: string[]
  readonly #machine: string
  #ports: number[] = []

  constructor(victim: Victim, random: Random, tally: Tally) {
    this.#victim = victim
    this.#random = random
    this.#tally = tally
    this.#project = random.uuid()
    this.#ids = [random.uuid(), random.uuid(), random.uuid()]
    this.#machine = random.uuid()
  }

  get #path(): string {
    return `/v2/compute/projects/${this.#project}`
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const some = Array.from({ length: 2 + this.#random.below(6) }, () => this.#one())
      await Promise.all(some)
      await delay(this.#random.between(5, 100))
    }
  }

  async clear(): Promise<void> {
    for (let tries = 0; tries < 20; tries++) {
      // The last of the requests may have closed it, and only an open one can be deleted.
      await this.#victim.ask('POST', '/v2/compute/projects', { name: 'conflicts', project_id: this.#project })
      const { status } = await this.#victim.ask('DELETE', this.#path)
      if (status === 204 || status === 404) return
      await delay(200)
    }
    this.#tally.lost('the project of the conflicting requests cannot be deleted')
  }

  async #one(): Promise<void> {
    const random = this.#random
    const id = random.one(this.#ids)
    const node =
      random.next() < 0.2 ? `${this.#path}/machine-emulator/nodes/${this.#machine}` : `${this.#path}/pc/nodes/${id}`
    const nio = `${node}/adapters/0/ports/0/nio`
    const roll = random.next()
    if (roll < 0.04) return this.#send('POST', '/v2/compute/projects', { name: 'conflicts', project_id: this.#project })
    if (roll < 0.045) return this.#send('DELETE', this.#path)
    if (roll < 0.05) return this.#send('POST', `${this.#path}/close`, {})
    if (roll < 0.1) return this.#send('POST', `${this.#path}/pc/nodes`, { name: 'PC', node_id: id })
    if (roll < 0.12) {
      const machine = { name: 'M', node_id: this.#machine, platform: 'x86_64', ram: 32 }
      return this.#send('POST', `${this.#path}/machine-emulator/nodes`, machine)
    }
    if (roll < 0.45)
      return this.#send('POST', `${node}/${random.one(['start', 'start', 'suspend', 'resume', 'reload'])}`)
    if (roll < 0.6) return this.#send('POST', `${node}/stop`)
    if (roll < 0.68) return this.#send('PUT', node, { name: random.one(['one', 'two', 'three']) })
    if (roll < 0.73) return this.#send('DELETE', node)
    if (roll < 0.83) return this.#attach(nio)
    if (roll < 0.88) return this.#send('DELETE', nio)
    if (roll < 0.92) return this.#send('GET', nio)
    if (roll < 0.96)
      return this.#send('POST', nio.replace(/nio$/, 'start_capture'), { capture_file_name: `${id}.pcap` })
    return this.#send('GET', node)
  }

  async #attach(nio: string): Promise<void> {
    if (this.#ports.length < 2) {
      const { status, body } = await this.#victim.ask('POST', `${this.#path}/ports/udp`, {})
      if (status !== 201) return
      this.#ports.push((JSON.parse(body.toString()) as { udp_port: number }).udp_port)
    }
    const [lport, rport] = [this.#random.one(this.#ports), this.#random.one(this.#ports)]
    await this.#send('POST', nio, { type: 'nio_udp', rhost: '127.0.0.1', lport, rport })
  }

  async #send(method: string, path: string, body?: object): Promise<void> {
    const { ends } = this.#victim
    if (!this.#victim.isUp) return void (await delay(50))
    this.#tally.tried('conflicting requests')
    const { status, body: answer } = await this.#victim.ask(method, path, body)
    const what = `${method} ${path.replace(/\/projects\/[^/]+/, '')}`
    if (status === 0 && this.#victim.ends === ends)
      this.#tally.lost(`${what}: no answer, though the service was not ended: ${answer}`)
    else if (status > 0 && !fine.has(status)) this.#tally.lost(`${what}: ${status} ${answer}`)
  }
}
