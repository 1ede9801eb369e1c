import type { CDPSession, Locator, Page } from 'playwright-core'
import { expect } from 'vitest'
import type { LabPage } from './lab-page.ts'

/** The screen of a phone. */
export const phone = { viewport: { width: 390, height: 844 }, hasTouch: true }

interface Point {
  readonly x: number
  readonly y: number
}

/** Fingers on the screen of a page. */
class Fingers {
  readonly #session: CDPSession

  private constructor(session: CDPSession) {
    this.#session = session
  }

  static async on(page: Page): Promise<Fingers> {
    return new Fingers(await page.context().newCDPSession(page))
  }

  /** Each finger goes from a place to another one. */
  async move(...ways: readonly (readonly [Point, Point])[]): Promise<void> {
    const steps = 6
    const at = (step: number) =>
      ways.map(([from, to], id) => ({
        ...{ id, x: from.x + ((to.x - from.x) * step) / steps, y: from.y + ((to.y - from.y) * step) / steps },
      }))
    await this.#send('touchStart', at(0))
    for (let step = 1; step <= steps; step++) await this.#send('touchMove', at(step))
    await this.#send('touchEnd', [])
  }

  async #send(type: 'touchStart' | 'touchMove' | 'touchEnd', touchPoints: (Point & { id: number })[]): Promise<void> {
    await this.#session.send('Input.dispatchTouchEvent', { type, touchPoints })
  }
}

async function middleOf(it: Locator): Promise<Point> {
  const box = await it.boundingBox()
  if (box === null) throw new Error(`${it} is not in sight`)
  return { x: box.x + box.width / 2, y: box.y + box.height / 2 }
}

/** A lab is made on a phone by fingers alone: nodes, a link, a ping, and its frames with their fields. */
export async function phoneLab(lab: LabPage): Promise<void> {
  const { page } = lab
  const fingers = await Fingers.on(page)
  await page.getByRole('button', { name: 'New lab' }).first().tap()
  await page.getByLabel('Name').fill('Phone')
  await page.getByRole('button', { name: 'Create' }).tap()
  await page.getByText('An empty lab').waitFor()
  for (const name of ['PC1', 'PC2']) {
    await page.getByRole('button', { name: 'PC', exact: true }).tap()
    await lab.node(name).waitFor()
  }
  const tile = (name: string) => lab.node(name).locator('.tile')
  // The node that was added last is selected, and has the dots.
  await fingers.move([await middleOf(page.locator('.handles circle').first()), await middleOf(tile('PC1'))])
  await lab.link('PC1', 'PC2').waitFor({ state: 'attached' })

  const before = await middleOf(tile('PC2'))
  await fingers.move([before, { x: before.x, y: before.y + 60 }])
  await expect.poll(async () => (await middleOf(tile('PC2'))).y).toBeGreaterThan(before.y + 40)
  const [one, two] = [await middleOf(tile('PC1')), await middleOf(tile('PC2'))]
  const middle = { x: (one.x + two.x) / 2, y: (one.y + two.y) / 2 }
  // Two fingers zoom, and one moves the map.
  const width = (await tile('PC1').boundingBox())?.width ?? 0
  const edge = { x: 60, y: middle.y }
  await fingers.move(
    [edge, { x: 20, y: edge.y }],
    [
      { x: 200, y: edge.y + 90 },
      { x: 240, y: edge.y + 90 },
    ],
  )
  await expect.poll(async () => (await tile('PC1').boundingBox())?.width).toBeGreaterThan(width * 1.1)
  await page.getByRole('button', { name: 'Show the whole lab' }).tap()

  await page.getByRole('button', { name: 'Start all nodes' }).tap()
  await lab.node('PC1', ', pc, running').waitFor()
  await lab.node('PC2', ', pc, running').waitFor()
  for (const [index, name] of ['PC1', 'PC2'].entries()) {
    await lab.node(name).tap()
    await page.getByRole('button', { name: 'Console', exact: true }).tap()
    await lab.shows(`${name}>`)
    await page.keyboard.type(`ip 10.0.0.${index + 1}/24\n`)
    await lab.shows(`10.0.0.${index + 1} 255.255.255.0`)
  }
  await page.touchscreen.tap(...(await middleOfLink(lab)))
  await page.getByText('Frames pass in both directions.').waitFor()
  await page.getByRole('button', { name: 'Packets' }).tap()
  await page.getByText('No frames yet').waitFor()
  await page.getByRole('button', { name: 'PC2', exact: true }).first().tap()
  await page.locator('[aria-label="Console of PC2"]:focus').waitFor()
  await page.keyboard.type('ping 10.0.0.1 -c 1\n')
  await lab.shows('icmp_seq=1')
  await page.getByRole('button', { name: /^PC[12] – PC[12]$/ }).tap()
  await page.getByRole('option', { name: /request/ }).tap()
  const fields = page.getByText('Internet Protocol Version 4', { exact: false }).first()
  await fields.scrollIntoViewIfNeeded()
  await fields.tap()
  await page.getByText('Time to Live', { exact: false }).first().waitFor()
  // Nothing is wider than the phone.
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(phone.viewport.width)
}

async function middleOfLink(lab: LabPage): Promise<[number, number]> {
  const [a, b] = [await middleOf(lab.node('PC1').locator('.tile')), await middleOf(lab.node('PC2').locator('.tile'))]
  return [(a.x + b.x) / 2, (a.y + b.y) / 2]
}
