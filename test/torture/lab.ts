import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Victim } from './service.ts'
import type { Tally } from './tally.ts'

/** The program of a node may need so long to be seen as ended, and a node to be started again, ms. */
const settleMs = 30_000
/** A pc shows its prompt within this, ms. */
const promptMs = 8000
/** A ping is answered within this, also on a busy machine, ms. */
const pingMs = 5000

/** A client of a console: it counts the bytes, and every number of the pings must follow the one before. */
class Counter {
  bytes = 0
  pings = 0
  readonly #socket: Socket
  #line = ''
  #last: number | undefined
  #isOver = false
  onLoss = () => {}

  constructor(port: number, name: string, tally: Tally) {
    this.#socket = connect(port, '127.0.0.1')
    this.#socket.on('error', () => {})
    this.#socket.on('data', (bytes: Buffer) => {
      this.bytes += bytes.length
      const lines = (this.#line + bytes.toString('latin1')).split('\n')
      this.#line = lines.pop() ?? ''
      for (const line of lines) this.#take(line, name, tally)
    })
    this.#socket.on('close', () => {
      if (!this.#isOver) tally.lost(`${name}: its console was closed though its node runs`)
    })
  }

  type(text: string): void {
    this.#socket.write(text)
  }

  /** What comes from now on does not count. */
  close(): void {
    this.#isOver = true
    this.#socket.destroy()
  }

  #take(line: string, name: string, tally: Tally): void {
    const number = Number(/icmp_seq=(\d+) /.exec(line)?.[1])
    if (this.#isOver || Number.isNaN(number)) return
    this.pings++
    if (!line.includes('ttl=')) {
      tally.lost(`${name}: ping ${number}: ${line.trim()}`)
      this.onLoss()
    }
    // A new run begins with 1, and one that was joined late anywhere.
    if (this.#last !== undefined && number !== this.#last + 1 && number !== 1)
      tally.lost(`${name}: ping ${number} follows ${this.#last} on the console`)
    this.#last = number
  }
}

interface Link {
  readonly a: string
  readonly b: string
  readonly name: string
}

/** Linked pairs of pcs, a ping across every link, and two clients at every console. */
export class Lab {
  readonly #victim: Victim
  readonly #tally: Tally
  readonly #links: Link[] = []
  #machines: string[] = []
  #counters: Counter[] = []
  #bytes = 0
  #pings = 0

  constructor(victim: Victim, tally: Tally) {
    this.#victim = victim
    this.#tally = tally
  }

  get nodes(): string[] {
    return [...this.#links.flatMap(({ a, b }) => [a, b]), ...this.#machines]
  }

  async make(pairs: number, machines: number): Promise<void> {
    const { project_id } = await this.#victim.json<{ project_id: string }>('POST', '/v2/compute/projects', {
      name: 'lab',
    })
    const project = `/v2/compute/projects/${project_id}`
    for (let pair = 0; pair < pairs; pair++) {
      const nodes = await Promise.all(
        [1, 2].map(async (number) => {
          const input = { name: `PC${number}`, startup_script: `ip 10.${pair}.0.${number}/24\n` }
          const { node_id } = await this.#victim.json<{ node_id: string }>('POST', `${project}/pc/nodes`, input)
          return `${project}/pc/nodes/${node_id}`
        }),
      )
      const ports = await Promise.all(
        nodes.map(() => this.#victim.json<{ udp_port: number }>('POST', `${project}/ports/udp`, {})),
      )
      const [lport, rport] = ports.map(({ udp_port }) => udp_port)
      const [a = '', b = ''] = nodes
      const nio = (from: number | undefined, to: number | undefined) => ({
        ...{ type: 'nio_udp', rhost: '127.0.0.1', lport: from, rport: to },
      })
      await this.#victim.json('POST', `${a}/adapters/0/ports/0/nio`, nio(lport, rport))
      await this.#victim.json('POST', `${b}/adapters/0/ports/0/nio`, nio(rport, lport))
      this.#links.push({ a, b, name: `link ${pair + 1}` })
    }
    for (let machine = 0; machine < machines; machine++) {
      const nodes = `${project}/machine-emulator/nodes`
      const input = { name: `M${machine}`, platform: 'x86_64', ram: 32 }
      const { node_id } = await this.#victim.json<{ node_id: string }>('POST', nodes, input)
      this.#machines.push(`${nodes}/${node_id}`)
    }
  }

  /** Starts what does not run, and the pings; whatever cannot be started in its time is a loss. */
  async up(): Promise<void> {
    const until = performance.now() + settleMs
    await Promise.all(this.nodes.map((node) => this.#start(node, until)))
    await Promise.all(this.#links.map(({ a, name }) => this.#ping(a, name)))
  }

  /** Nothing counts until `up`: something is ended on purpose. */
  quiet(): void {
    for (const counter of this.#counters) {
      this.#bytes += counter.bytes
      this.#pings += counter.pings
      counter.close()
    }
    this.#counters = []
  }

  /** All nodes must be shown with the status that they have, which nothing has changed. */
  async expectStarted(why: string): Promise<void> {
    const answers = await Promise.all(this.nodes.map((node) => this.#victim.ask('GET', node)))
    for (const [index, { status, body }] of answers.entries()) {
      this.#tally.tried('look at a running node')
      const shown = status === 200 ? (JSON.parse(body.toString()) as { status: string }).status : String(status)
      if (shown !== 'started') this.#tally.lost(`${this.nodes[index]} is ${shown} ${why}`)
    }
  }

  /** What is known of both ends of a link, into the list of events. */
  async #tellStates(name: string): Promise<void> {
    const link = this.#links.find((it) => it.name === name)
    for (const node of [link?.a, link?.b]) {
      for (const path of [`${node}`, `${node}/adapters/0/ports/0/nio`])
        this.#tally.happened(`${path}: ${(await this.#victim.ask('GET', path)).body}`)
    }
  }

  count(): void {
    this.quiet()
    this.#tally.tried('bytes on consoles', this.#bytes)
    this.#tally.tried('pings seen on consoles', this.#pings)
    this.#bytes = 0
    this.#pings = 0
  }

  async #start(node: string, until: number): Promise<void> {
    this.#tally.tried('start of a node in the lab')
    for (;;) {
      const { status, body } = await this.#victim.ask('POST', `${node}/start`)
      if (status === 200) return
      if (performance.now() > until) return this.#tally.lost(`${node} cannot be started: ${status} ${body}`)
      await delay(200)
    }
  }

  async #ping(node: string, name: string): Promise<void> {
    const until = performance.now() + settleMs
    let port: number | undefined
    while (port === undefined) {
      const { status, body } = await this.#victim.ask('GET', node)
      const { console = 0 } = status === 200 ? (JSON.parse(body.toString()) as { console: number }) : {}
      if (await prompt(console)) port = console
      else if (performance.now() > until) return this.#tally.lost(`${name} shows no prompt on its console: ${body}`)
      // That it was killed may not have been known when it was to be started.
      else await this.#start(node, until)
    }
    const console = port
    // VPCS shows a prompt for the end of its ping, and one for the key, before which it throws away what was typed.
    await delay(500)
    const counters = [1, 2].map((client) => new Counter(console, `${name}, client ${client}`, this.#tally))
    this.#counters.push(...counters)
    for (const counter of counters) counter.onLoss = () => void this.#tellStates(name)
    const other = Number(name.split(' ')[1]) - 1
    counters[0]?.type(`ping 10.${other}.0.2 -c 100000 -i 50 -w ${pingMs}\r`)
  }
}

/** Waits for the prompt of a pc. */
function prompt(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    let shown = ''
    const done = (isThere: boolean) => {
      clearTimeout(timer)
      clearInterval(interrupt)
      socket.destroy()
      resolve(isThere)
    }
    const timer = setTimeout(() => done(false), promptMs)
    socket.on('close', () => done(false))
    // It may be in the middle of a ping, if it was not the one that was ended; while it boots Ctrl-C would end its script.
    const interrupt = setInterval(() => socket.write('\x03'), 3000)
    socket.on('error', () => done(false))
    socket.on('data', (bytes) => {
      shown = (shown + bytes.toString('latin1')).slice(-400)
      if (/\r[^\r\n]+> $/.test(shown)) done(true)
    })
  })
}
