import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { performance } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { launchChromium } from '../support/launch-chromium.ts'
import { at, median, ms, target } from './medians.ts'
import type { Service } from './service.ts'
import type { Row } from './table.ts'

const idleMs = 10_000
const consoles = { count: 10, bytesPerS: 1_000_000, seconds: 5, keys: 20, echoMs: 50 } as const
const packets = { perS: 20_000, seconds: 5, size: 64 } as const
const others = { rounds: 20, withinMs: 200 } as const

/** The page while much happens: a lab that runs, busy consoles, a busy link, and a second person. */
export async function live(chromium: Browser, service: Service): Promise<Row[]> {
  const context = await chromium.newContext({ viewport: { width: 1600, height: 1000 } })
  try {
    return [
      ...(await running(context, service)),
      ...(await together(context, service)),
      ...(await busyConsoles(context, service)),
      ...(await busyLink(context, service)),
    ]
  } finally {
    await context.close()
  }
}

interface MadeLab {
  readonly id: string
  readonly path: string
  readonly nodes: readonly string[]
}

/** Makes and starts a lab of PCs, each two of them on a cable. */
async function pcs(service: Service, name: string, count: number): Promise<MadeLab> {
  const { project_id } = (await service.call('POST', '/v2/projects', { name })) as { project_id: string }
  const path = `/v2/projects/${project_id}`
  const nodes: string[] = []
  for (let index = 0; index < count; index++) {
    const place = { x: (index % 12) * 140, y: Math.floor(index / 12) * 140 }
    const body = { name: `PC${index + 1}`, node_type: 'pc', compute_id: 'local', ...place }
    nodes.push(((await service.call('POST', `${path}/nodes`, body)) as { node_id: string }).node_id)
  }
  for (let index = 0; index + 1 < count; index += 2) {
    const ends = nodes.slice(index, index + 2).map((node_id) => ({ node_id, adapter_number: 0, port_number: 0 }))
    await service.call('POST', `${path}/links`, { nodes: ends })
  }
  await service.call('POST', `${path}/nodes/start`)
  return { id: project_id, path, nodes }
}

async function open(context: BrowserContext, service: Service, lab: string): Promise<Page> {
  const page = await context.newPage()
  page.setDefaultTimeout(120_000)
  await page.goto(`${service.url}/#/labs/${encodeURIComponent(lab)}`)
  await page.locator('.node').first().waitFor()
  return page
}

const node = (page: Page, name: string) => page.getByRole('button', { name: new RegExp(`^${name}, `) })

/** What the page of a lab takes in which nothing happens but that it runs. */
async function running(context: BrowserContext, service: Service): Promise<Row[]> {
  const { path } = await pcs(service, 'Idle', 100)
  const page = await open(context, service, 'Idle')
  await page.getByText('100, 100 of 100 running').waitFor()
  const client = await context.newCDPSession(page)
  await client.send('Performance.enable', { timeDomain: 'threadTicks' })
  const taken = async () =>
    (await client.send('Performance.getMetrics')).metrics.find(({ name }) => name === 'TaskDuration')?.value ?? NaN
  const before = await taken()
  await pause(idleMs)
  const share = (await taken()) - before
  await page.close()
  await service.call('POST', `${path}/close`)
  const percent = (share / idleMs) * 100_000
  return [['idle, 100 PCs run', `${percent.toFixed(2)} % of a core`, target(percent < 1, '1 %')]]
}

/** Time until another person sees a selection, and where a node was dropped. */
async function together(context: BrowserContext, service: Service): Promise<Row[]> {
  const { path } = await pcs(service, 'Two', 2)
  // Each in a browser: a page that is not in front is slow.
  const other = await launchChromium()
  const one = await open(context, service, 'Two')
  const two = await open(await other.newContext(), service, 'Two')
  /** Begins to wait for a change of the node in the second page; the result resolves with its time. */
  const seen = async (what: 'move' | 'selection') => {
    await two.evaluate((kind) => {
      const it = document.querySelector('.node') as SVGElement
      const state = () => (kind === 'move' ? it.getAttribute('transform') : it.querySelector('.others') === null)
      const before = state()
      const changed = new Promise<number>((resolve) => {
        const observer = new MutationObserver(() => {
          if (state() === before) return
          observer.disconnect()
          resolve(Date.now())
        })
        observer.observe(it, { attributes: true, childList: true, subtree: true })
      })
      Object.assign(globalThis, { changed })
    }, what)
    return () => two.evaluate<number>('changed')
  }
  const tile = one.locator('.node .tile').first()
  const [selections, moves]: [number[], number[]] = [[], []]
  for (let round = 0; round < others.rounds; round++) {
    const box = await tile.boundingBox()
    if (box === null) throw new Error('the node is not on the map')
    const spot = { x: box.x + box.width / 2, y: box.y + box.height / 2 }
    const selected = await seen('selection')
    let began = Date.now()
    if (round % 2 === 0) await one.mouse.click(spot.x, spot.y)
    else await one.keyboard.press('Escape')
    selections.push((await selected()) - began)
    await one.mouse.move(spot.x, spot.y)
    await one.mouse.down()
    await one.mouse.move(spot.x + (round % 2 === 0 ? 40 : -40), spot.y, { steps: 3 })
    const moved = await seen('move')
    began = Date.now()
    await one.mouse.up()
    moves.push((await moved()) - began)
    // The drag has selected the node, too.
    if (round % 2 === 1) await one.keyboard.press('Escape')
    await pause(300)
  }
  await one.close()
  await other.close()
  await service.call('POST', `${path}/close`)
  const row = (what: string, values: readonly number[]): Row => {
    const most = at(values, 0.95)
    return [
      what,
      `${ms(most)} p95`,
      `${ms(median(values))} p50, ${target(most < others.withinMs, ms(others.withinMs))}`,
    ]
  }
  return [row('another person sees a selection', selections), row('another person sees an edit', moves)]
}

/** In the page: counts the bytes that the consoles of nodes send, by node. */
function countSockets(): void {
  const arrived: Record<string, number> = {}
  class CountedSocket extends WebSocket {
    constructor(url: string | URL, protocols?: string | string[]) {
      super(url, protocols)
      const name = /nodes\/([^/]+)\/console/.exec(String(url))?.[1] ?? ''
      this.addEventListener('message', ({ data }) => {
        arrived[name] = (arrived[name] ?? 0) + (data as ArrayBuffer).byteLength
      })
    }
  }
  Object.assign(globalThis, { arrived, WebSocket: CountedSocket })
}

/** Consoles that print much, and one beside them that is typed on. */
async function busyConsoles(context: BrowserContext, service: Service): Promise<Row[]> {
  const { id, path, nodes } = await pcs(service, 'Consoles', consoles.count + 1)
  // Counted in the page: a browser that tells of each frame takes longer for that than the page for the frame.
  await context.addInitScript(countSockets)
  const page = await open(context, service, 'Consoles')
  const arrivals = async () => new Map(Object.entries(await page.evaluate<Record<string, number>>('arrived')))
  for (let index = consoles.count; index >= 0; index--) {
    await node(page, `PC${index + 1}`).dblclick()
    await page.getByRole('textbox', { name: `Console of PC${index + 1}` }).waitFor()
  }
  // The first is typed on; the others are made to print by clients beside the page, which count what comes.
  const busy = nodes.slice(1)
  const sent = new Map<string, number>()
  const sockets = await Promise.all(
    busy.map(async (name) => {
      const socket = new WebSocket(`${service.url.replace('http', 'ws')}/v2/projects/${id}/nodes/${name}/console/ws`)
      socket.binaryType = 'arraybuffer'
      socket.onmessage = ({ data }) => sent.set(name, (sent.get(name) ?? 0) + (data as ArrayBuffer).byteLength)
      await once(socket, 'open')
      return socket
    }),
  )
  const sum = (counts: ReadonlyMap<string, number>) => busy.reduce((total, name) => total + (counts.get(name) ?? 0), 0)
  await pause(1000)
  const before = sum(sent)
  const began = performance.now()
  let isOver = false
  const printing = (async () => {
    while (!isOver) {
      const due = ((performance.now() - began) / 1000) * consoles.bytesPerS
      if (sum(sent) - before < due) for (const socket of sockets) socket.send('help\r')
      await pause(5)
    }
  })()
  await page.locator('.console:not(.is-behind) .xterm-rows', { hasText: 'PC1>' }).waitFor()
  // The first requests come before the first answers tell how much is on its way.
  await pause(1000)
  const echoes: number[] = []
  for (let key = 0; key < consoles.keys; key++) {
    await page.evaluate(() => {
      const rows = document.querySelector('.console:not(.is-behind) .xterm-rows') as Element
      const echo = new Promise<number>((resolve) => {
        let pressed = 0
        const observer = new MutationObserver(() => {
          if (pressed === 0) return
          observer.disconnect()
          resolve(performance.now() - pressed)
        })
        observer.observe(rows, { childList: true, subtree: true, characterData: true })
        const onKey = ({ timeStamp }: Event) => {
          pressed = timeStamp
        }
        addEventListener('keydown', onKey, { once: true, capture: true })
      })
      Object.assign(globalThis, { echo })
    })
    await page.keyboard.press('x')
    echoes.push(await page.evaluate<number>('echo'))
    await pause((consoles.seconds * 1000) / consoles.keys)
  }
  isOver = true
  await printing
  const took = (performance.now() - began) / 1000
  const rate = (sum(sent) - before) / took
  // What is on the way comes: until nothing more does.
  let arrived = await arrivals()
  for (let last = -1; last !== sum(sent) + sum(arrived); ) {
    last = sum(sent) + sum(arrived)
    await pause(1000)
    arrived = await arrivals()
  }
  for (const socket of sockets) socket.close()
  const lost = busy.filter((name) => (arrived.get(name) ?? 0) !== (sent.get(name) ?? 0)).length
  await page.close()
  await service.call('POST', `${path}/close`)
  const most = at(echoes, 0.95)
  return [
    [
      `${consoles.count} consoles`,
      `${(rate / 1e6).toFixed(2)} MB/s`,
      `${lost === 0 ? 'nothing' : `bytes of ${lost} consoles`} lost, ${target(lost === 0 && rate > consoles.bytesPerS * 0.95, '1 MB/s without loss')}`,
    ],
    [
      'echo of a key on another console meanwhile',
      `${ms(most)} p95`,
      `${ms(median(echoes))} p50, ${target(most < consoles.echoMs, ms(consoles.echoMs))}`,
    ],
  ]
}

/** The table of packets at a link with more frames than it can show. */
async function busyLink(context: BrowserContext, service: Service): Promise<Row[]> {
  const { id, path, nodes } = await pcs(service, 'Packets', 2)
  const socket = createSocket({ type: 'udp4', sendBufferSize: 4 << 20 }).bind(0, '127.0.0.1')
  await once(socket, 'listening')
  const lports: number[] = []
  for (const [index, name] of nodes.entries()) {
    const nio = `/v2/compute/projects/${id}/pc/nodes/${name}/adapters/0/ports/0/nio`
    if (index === 0) await service.call('DELETE', nio)
    const { udp_port } = (await service.call('POST', `/v2/compute/projects/${id}/ports/udp`)) as { udp_port: number }
    const end = { type: 'nio_udp', lport: udp_port, rport: socket.address().port, rhost: '127.0.0.1' }
    await service.call('POST', nio, end)
    lports.push(udp_port)
  }
  const page = await open(context, service, 'Packets')
  await page.locator('.link').first().focus()
  await page.keyboard.press('p')
  await page.getByText('No frames yet').waitFor()
  const frame = Buffer.alloc(packets.size)
  frame.set([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x90, 0])
  await page.evaluate(() => {
    const gaps: number[] = []
    let last = performance.now()
    const next = (now: number) => {
      gaps.push(now - last)
      last = now
      requestAnimationFrame(next)
    }
    requestAnimationFrame(next)
    Object.assign(globalThis, { gaps })
  })
  const began = performance.now()
  let sent = 0
  while (performance.now() - began < packets.seconds * 1000) {
    const due = ((performance.now() - began) / 1000) * packets.perS
    for (; sent < due; sent++) for (const port of lports) socket.send(frame, port, '127.0.0.1')
    await pause(2)
  }
  const rate = (sent / (performance.now() - began)) * 1000
  await pause(2000)
  const words = await page.locator('.packets [role=status]').innerText()
  const numberOf = (pattern: RegExp) => Number(pattern.exec(words)?.[1]?.replaceAll(',', '') ?? 0)
  const told = numberOf(/^([\d,]+) frames/) + numberOf(/([\d,]+) lost/)
  const gaps = (await page.evaluate('gaps')) as number[]
  await page.close()
  socket.close()
  await service.call('POST', `${path}/close`)
  return [
    [
      `${Math.round(rate).toLocaleString('en')} frames/s at the table of packets`,
      `${((100 * told) / sent).toFixed(1)} % told`,
      `${words}; ${target(told > sent * 0.99 && rate > packets.perS * 0.95, '20,000 frames/s, all counted')}`,
    ],
    [
      'longest wait for a picture of the page meanwhile',
      `${ms(at(gaps, 0.99))} p99`,
      `${ms(Math.max(...gaps))} at most`,
    ],
  ]
}
