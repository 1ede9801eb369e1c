import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createPc } from '../support/lab.ts'
import { TestService } from '../support/service.ts'
import { type OpenSocket, WorkerGateway } from '../support/worker-gateway.ts'

// The object falls asleep when nothing has happened for ten seconds.

const projects = '/v2/compute/projects'
const hostFeed = '/v2/compute/notifications'
/** Computes are looked at every so often, ms, which wakes the object for ten seconds. */
const lookMs = 15_000
const asleepAfterMs = 12_500

/** A figure of a service's metrics. */
async function figure(asked: Promise<Response>, name: string): Promise<number> {
  const [, value] = new RegExp(`^${name} (\\S+)$`, 'm').exec(await (await asked).text()) ?? []
  return Number(value)
}

/** A gateway and a compute that has joined it. */
class Lab {
  readonly gateway: WorkerGateway
  readonly service: TestService
  /** When computes were looked at, ms: it is so again every 15 s. */
  #lookedAt = Date.now()

  private constructor(gateway: WorkerGateway, service: TestService) {
    this.gateway = gateway
    this.service = service
  }

  static async start(): Promise<Lab> {
    const gateway = await WorkerGateway.start()
    const { token } = await gateway.call('POST', '/v2/tokens', { name: 'behind NAT', purpose: 'join' })
    const service = await TestService.start({
      ...{ 'pc.engine': 'embedded' },
      ...{ 'join.url': gateway.url.replace('http', 'ws'), 'join.token': token },
    })
    const lab = new Lab(gateway, service)
    await gateway.untilConnected((await readFile(join(service.data, 'compute-id'), 'utf8')).trim())
    return lab
  }

  /** When the program of the object began, ms. It is awake then. */
  async began(): Promise<number> {
    const seconds = await figure(this.gateway.fetch('GET', '/metrics'), 'patchbay_object_start_time_seconds')
    return seconds * 1000
  }

  /** Feeds that are open at the compute. */
  feeds(): Promise<number> {
    return figure(this.service.fetch('/metrics'), 'patchbay_feeds_open')
  }

  /** Does something while the object sleeps, and `proof` once it has happened; nothing else wakes it before. */
  async whileAsleep(act: () => Promise<unknown>, proof: () => Promise<unknown>): Promise<void> {
    for (let tries = 0; ; tries++) {
      if (tries === 6) throw new Error('the object does not sleep')
      while (this.#lookedAt + asleepAfterMs < Date.now() + asleepAfterMs - 2000) this.#lookedAt += lookMs
      await pause(this.#lookedAt + asleepAfterMs - Date.now())
      const at = Date.now()
      await act()
      await proof()
      const began = await this.began()
      if (began >= at) return
      // A look came in between: that is when it begins anew, too.
      this.#lookedAt = began
    }
  }
}

interface Line {
  readonly action: string
  readonly event: { readonly name?: string; readonly memory_usage_percent?: number }
  readonly seq?: number
}

/** The lines that came by a feed until now; of pings only how many there were, and how many told of a load. */
function linesOf(text: string): { told: string[]; pings: number; loads: number; seqs: number[] } {
  const lines = text
    .split(/(?<=\})\n?(?=\{"action")/)
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line)
  const told = lines.filter(({ action }) => action !== 'ping' && action !== 'compute.updated')
  return {
    told: told.map(({ action, event }) => `${action} ${event.name ?? ''}`),
    pings: lines.filter(({ action }) => action === 'ping').length,
    loads: lines.filter(({ action, event }) => action === 'ping' && Number(event.memory_usage_percent) > 0).length,
    seqs: lines.flatMap(({ seq }) => seq ?? []),
  }
}

/** What came by feeds, however they are read. */
class Heard {
  readonly #read: () => string
  #text = ''

  constructor(read: () => string) {
    this.#read = read
  }

  static ofSocket(socket: OpenSocket): Heard {
    return new Heard(() => socket.takeText())
  }

  static ofStream(response: Response): Heard {
    let text = ''
    const sink = new WritableStream<string>({
      write(piece) {
        text += piece
      },
    })
    response.body
      ?.pipeThrough(new TextDecoderStream())
      .pipeTo(sink)
      .catch(() => {})
    return new Heard(() => {
      const taken = text
      text = ''
      return taken
    })
  }

  /** Everything until now. */
  get all(): ReturnType<typeof linesOf> {
    this.#text += this.#read()
    return linesOf(this.#text)
  }
}

test('feeds stay open while the object hibernates, and an event wakes it and is reported once', async () => {
  const lab = await Lab.start()
  const { gateway, service } = lab
  const { project_id } = await gateway.call('POST', projects, { name: 'lab' })
  const project = `${projects}/${project_id}`
  const pc = await createPc(gateway, project, 1)
  const paths = ['/v2/notifications', `${hostFeed}/ws`, `${project}/notifications/ws`, `${project}/notifications`]
  const sockets: OpenSocket[] = []
  // One after the other: workerd was seen to keep an object awake after several were opened at once.
  for (const path of paths) sockets.push(await gateway.open(path))
  const leaving = new AbortController()
  const lines = await gateway.fetch('GET', hostFeed, undefined, { signal: leaving.signal })
  const heard = [...sockets.map(Heard.ofSocket), Heard.ofStream(lines)]
  await expect.poll(() => heard.map(({ all }) => all.pings)).toEqual(heard.map(() => 1))
  // One of all computes for the gateway, and those of the project.
  expect(await lab.feeds()).toBe(3)

  const told: string[] = []
  for (const name of ['while it slept', 'again']) {
    await lab.whileAsleep(
      async () => {
        told.push(`node.updated ${name} ${told.length}`)
        await service.call('PUT', pc, { name: `${name} ${told.length - 1}` })
      },
      () => expect.poll(() => heard.map(({ all }) => all.told)).toEqual(heard.map(() => told)),
    )
  }
  await pause(500)
  for (const { all } of heard) {
    expect(all.told).toEqual(told)
    expect(all.seqs).toEqual(all.seqs.toSorted((a, b) => a - b))
    expect(all.pings).toBeGreaterThanOrEqual(5)
    expect(all.loads).toBe(all.pings)
  }
  expect(await lab.feeds()).toBe(3)
  // An event that comes while it is awake takes the same way.
  await service.call('PUT', pc, { name: 'at once' })
  await expect.poll(() => heard.map(({ all }) => all.told.at(-1))).toEqual(heard.map(() => 'node.updated at once'))

  // Who leaves the gateway leaves the computes, too; that a stream has gone is noticed with its next ping.
  leaving.abort()
  await Promise.all(sockets.map((socket) => socket.close()))
  await expect.poll(() => lab.feeds()).toBe(0)
})

test('a feed ends when its token is revoked, and one that is refused says why', async () => {
  const gateway = await WorkerGateway.start()
  const { token, token_id } = await gateway.call('POST', '/v2/tokens', { name: 'ben', role: 'read' })
  const authorization = `Bearer ${token}`
  const feed = await gateway.open('/v2/notifications', { authorization })
  const other = await gateway.open(hostFeed)
  await Promise.all([feed.shows('"ping"'), other.shows('"ping"')])
  const { ticket } = await gateway.call('POST', '/v2/compute/tickets')
  const byTicket = await gateway.open(`${hostFeed}/ws?ticket=${ticket}`, {})
  await byTicket.shows('"ping"')
  const refused = (path: string, headers: Record<string, string>) =>
    gateway.fetch('GET', path, undefined, { headers }).then(async (it) => [it.status, await it.json()])
  const missing = `${projects}/00000000-0000-4000-8000-000000000000/notifications`
  expect(await refused(missing, {})).toMatchObject([
    404,
    { message: expect.stringMatching(/no open project|no compute/) },
  ])
  expect(await refused(hostFeed, { authorization: 'Bearer wrong' })).toMatchObject([401, {}])
  expect(await refused(`${hostFeed}/ws?ticket=${ticket}`, { authorization: '' })).toMatchObject([401, {}])
  // Nobody comes to the feeds of isolates from outside.
  expect(await refused('/feeds?wanted={}', { 'x-patchbay-isolate': 'guessed' })).toMatchObject([404, {}])

  const ended = feed.closed()
  await gateway.call('DELETE', `/v2/tokens/${token_id}`)
  expect(await ended).toBe(1001)
  // Isolates have what they know of a token for some seconds: the object does not take their word for it.
  expect(await refused('/v2/notifications', { authorization })).toMatchObject([401, {}])
  other.takeText()
  await other.shows('"ping"')
})
