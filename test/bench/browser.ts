import { performance } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'
import type { Browser, CDPSession, Page } from 'playwright-core'
import { launchChromium } from '../support/launch-chromium.ts'
import { live } from './browser-live.ts'
import { link, makeLab } from './labs/large.ts'
import { at, median, ms, target } from './medians.ts'
import { type Service, startService } from './service.ts'
import type { Row } from './table.ts'

const [turns, frames, idleMs] = [5, 60, 5000]
const labs = [
  { nodes: 100, links: 180, dragMs: 8, pictureMs: undefined, elements: 1500 },
  { nodes: 1000, links: 1500, dragMs: 24, pictureMs: 1500, elements: undefined },
] as const

/** The page of the labs in Chromium: its begin, a large map that is shown and dragged, and what it takes idle. */
export async function browser(): Promise<Row[]> {
  const service = await startService('--pc-engine', 'embedded')
  const chromium = await launchChromium()
  try {
    const cold: number[] = []
    for (let turn = 0; turn < turns; turn++) cold.push(await coldLoad(chromium, service))
    const rows: Row[] = [['usable from cold', `${ms(median(cold))} p50`, target(median(cold) < 500, ms(500))]]
    for (const lab of labs) rows.push(...(await map(chromium, service, lab)))
    return [...rows, ...(await live(chromium, service))]
  } finally {
    await chromium.close()
    await service.close()
  }
}

/** Time until the list of labs can be used, in a browser that has nothing of it. */
async function coldLoad(chromium: Browser, { url }: Service): Promise<number> {
  const context = await chromium.newContext()
  const page = await context.newPage()
  const began = performance.now()
  await page.goto(url)
  await page.getByRole('button', { name: 'New lab' }).first().waitFor()
  const took = performance.now() - began
  await context.close()
  return took
}

async function map(chromium: Browser, service: Service, wanted: (typeof labs)[number]): Promise<Row[]> {
  const name = `${wanted.nodes} nodes, ${wanted.links} links`
  const lab = await makeLab(service, name, wanted.nodes)
  const nodes = (await service.call('GET', `${lab}/nodes`)) as { node_id: string }[]
  await link(
    service,
    lab,
    nodes.map(({ node_id }) => node_id),
    wanted.links,
  )
  const context = await chromium.newContext({ viewport: { width: 1600, height: 1000 } })
  const page = await context.newPage()
  const began = performance.now()
  await page.goto(`${service.url}/#/labs/${encodeURIComponent(name)}`)
  await page.locator('.node').nth(20).waitFor()
  await nextFrame(page)
  const picture = performance.now() - began
  const elements = await page.locator('*').count()
  const client = await context.newCDPSession(page)
  // Processor time of the page's thread: a busy machine does not change it as it does that of a clock.
  await client.send('Performance.enable', { timeDomain: 'threadTicks' })
  const before = await secondsOf(client, 'TaskDuration')
  await pause(idleMs)
  const idle = ((await secondsOf(client, 'TaskDuration')) - before) / (idleMs / 1000)
  const whole = await dragged(page, client)
  // Near enough that names can be read, and a part of the lab is in sight.
  for (let step = 0; step < 12; step++) await page.keyboard.press('+')
  const near = await dragged(page, client)
  await context.close()
  const verdict = (values: readonly number[]) =>
    `${ms(median(values))} p50, ${target(at(values, 0.95) <= wanted.dragMs, ms(wanted.dragMs))}`
  return [
    [
      `${name}: first picture`,
      ms(picture),
      wanted.pictureMs === undefined ? '' : target(picture < wanted.pictureMs, ms(wanted.pictureMs)),
    ],
    [
      'elements of the page',
      String(elements),
      wanted.elements === undefined ? '' : target(elements < wanted.elements, String(wanted.elements)),
    ],
    ['script of a dragged frame, the whole lab in sight', `${ms(at(whole, 0.95))} p95`, verdict(whole)],
    ['the same, near', `${ms(at(near, 0.95))} p95`, verdict(near)],
    ['idle, nothing runs', `${(idle * 100).toFixed(1)} % of a core`, target(idle < 0.01, '1 %')],
  ]
}

/** Drags the node in the middle; the result: processor time of scripts in each frame, ms. */
async function dragged(page: Page, client: CDPSession): Promise<number[]> {
  const spot = await page.evaluate(() => {
    const middle = { x: innerWidth / 2, y: innerHeight / 2 }
    const places = [...document.querySelectorAll('.node .tile')].map((it) => {
      const { x, y, width, height } = it.getBoundingClientRect()
      return { x: x + width / 2, y: y + height / 2 }
    })
    const distance = (it: { x: number; y: number }) => Math.hypot(it.x - middle.x, it.y - middle.y)
    return places.reduce((a, b) => (distance(b) < distance(a) ? b : a))
  })
  await page.mouse.move(spot.x, spot.y)
  await page.mouse.down()
  await page.mouse.move(spot.x + 10, spot.y)
  const took: number[] = []
  for (let frame = 0; frame < frames; frame++) {
    const before = await secondsOf(client, 'ScriptDuration')
    await page.mouse.move(spot.x + 10 + frame * 2, spot.y + (frame % 20))
    await nextFrame(page)
    took.push(((await secondsOf(client, 'ScriptDuration')) - before) * 1000)
  }
  await page.mouse.move(spot.x, spot.y)
  await page.mouse.up()
  return took
}

const nextFrame = (page: Page): Promise<void> =>
  page.evaluate(() => new Promise<void>((resolve) => requestAnimationFrame(() => resolve())))

async function secondsOf(client: CDPSession, name: string): Promise<number> {
  const { metrics } = await client.send('Performance.getMetrics')
  return metrics.find((it) => it.name === name)?.value ?? Number.NaN
}
