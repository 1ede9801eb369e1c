import type { BrowserContextOptions, Locator, Page } from 'playwright-core'
import { expect } from 'vitest'
import { startChromium } from './chromium.ts'
import { hangMs } from './limits.ts'

/** What Chromium writes without a fault of the page: an answer that a user is told of (sign in, or do something else before). */
const harmless = /the server responded with a status of (401|409)/

/** The page of the labs in a browser, as a person uses it. */
export class LabPage {
  readonly page: Page
  /** Requests to other services, errors of scripts, and messages of the browser about its policy. */
  readonly faults: string[] = []

  private constructor(page: Page) {
    this.page = page
  }

  static async open(url: string, path = '/', options: BrowserContextOptions = {}): Promise<LabPage> {
    const browser = await startChromium()
    const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options })
    page.setDefaultTimeout(hangMs)
    const lab = new LabPage(page)
    page.on('request', (request) => {
      const isOwn = [url, 'data:', 'blob:'].some((it) => request.url().startsWith(it))
      if (!isOwn) lab.faults.push(request.url())
    })
    page.on('pageerror', (error) => lab.faults.push(String(error)))
    page.on('console', (message) => {
      if (message.type() === 'error' && !harmless.test(message.text()))
        lab.faults.push(`${message.text()} ${message.location().url}`)
    })
    await page.goto(url + path)
    return lab
  }

  /** A node on the map; `more` follows its name in the label, such as `, pc, running`. */
  node(name: string, more = ', '): Locator {
    return this.page.getByRole('button', { name: new RegExp(`^${name}${more}`) })
  }

  /** A link on the map. One that is level has no height, so that it counts as hidden. */
  link(from: string, to: string): Locator {
    return this.page.getByRole('button', { name: new RegExp(`^Link (${from} .* to ${to}|${to} .* to ${from}) `) })
  }

  /** Signs in by a token. */
  async signIn(token: string): Promise<void> {
    await this.page.getByLabel('Token', { exact: true }).last().fill(token)
    await this.page.getByRole('button', { name: 'Sign in' }).click()
    await this.page.getByRole('heading', { name: 'Labs', exact: true }).waitFor()
  }

  async newLab(name: string): Promise<void> {
    await this.page.getByRole('button', { name: 'New lab' }).first().click()
    await this.page.getByLabel('Name').fill(name)
    await this.page.getByRole('button', { name: 'Create' }).click()
    await this.page.getByText('An empty lab').waitFor()
  }

  /** Drags a template onto the map, and waits for the node of that name. */
  async place(template: string, at: { x: number; y: number }, name: string): Promise<void> {
    await this.page
      .getByRole('button', { name: template, exact: true })
      .dragTo(this.page.getByRole('application'), { targetPosition: at })
    await this.node(name).waitFor()
  }

  /** Draws a link by the mouse, from the dot at the right edge of a node, between the first free ports: with Alt nothing is asked. */
  async draw(from: string, to: string): Promise<void> {
    await this.drag(from, to, 'Alt')
    await this.link(from, to).waitFor({ state: 'attached' })
  }

  /** The same, without waiting for the link: the page may ask for ports. `key`: one that is held down at the end. */
  async drag(from: string, to: string, key?: string): Promise<void> {
    const { mouse } = this.page
    const [a, b] = [await this.#box(from), await this.#box(to)]
    await mouse.move(a.x + a.width / 2, a.y + a.height / 2)
    await mouse.move(a.x + a.width + 1, a.y + a.height / 2)
    await mouse.down()
    await mouse.move(a.x + a.width + 30, a.y, { steps: 3 })
    await mouse.move(b.x + b.width / 2, b.y + b.height / 2, { steps: 3 })
    if (key !== undefined) await this.page.keyboard.down(key)
    await mouse.up()
    if (key !== undefined) await this.page.keyboard.up(key)
  }

  /** Clicks a link with the mouse, in the middle between its nodes. */
  async clickLink(from: string, to: string): Promise<void> {
    const [a, b] = [await this.#box(from), await this.#box(to)]
    await this.page.mouse.click(
      (a.x + a.width / 2 + b.x + b.width / 2) / 2,
      (a.y + a.height / 2 + b.y + b.height / 2) / 2,
    )
  }

  /** Pulls a slider of the impairment from its left end with the mouse, until it shows a value such as `100 ms`. */
  async pull(knob: string, wanted: string): Promise<void> {
    const slider = this.page.getByRole('slider', { name: `${knob}, slider` })
    const box = await slider.boundingBox()
    if (box === null) throw new Error(`${knob} has no slider`)
    const { mouse } = this.page
    const y = box.y + box.height / 2
    const shown = async (x: number) => {
      await mouse.move(box.x + x, y)
      await this.page.evaluate('new Promise(requestAnimationFrame)')
      return (await slider.getAttribute('aria-valuetext')) ?? ''
    }
    await mouse.move(box.x + 6, y)
    await mouse.down()
    // In strides until it is past the value, and from the stride before in small steps.
    const isShort = (text: string) => !(Number.parseFloat(text) >= Number.parseFloat(wanted))
    let x = 7
    while (x < box.width && isShort(await shown(x))) x += 16
    for (x = Math.max(7, x - 16); x < box.width; x += 0.5) if ((await shown(x)) === wanted) break
    await mouse.up()
  }

  /** Opens the console of a node by a double click. */
  async openConsole(name: string): Promise<Locator> {
    await this.node(name).dblclick()
    const input = this.page.getByRole('textbox', { name: `Console of ${name}` })
    await input.waitFor()
    return input
  }

  /** What the console that is shown has on its screen. */
  screen(): Promise<string> {
    return this.page.locator('.console:not(.is-behind) .xterm-rows').innerText()
  }

  async shows(text: string | RegExp): Promise<void> {
    await expect.poll(() => this.screen(), { timeout: hangMs }).toMatch(text)
  }

  async #box(name: string): Promise<{ x: number; y: number; width: number; height: number }> {
    const box = await this.node(name).locator('.tile').boundingBox()
    if (box === null) throw new Error(`${name} is not on the map`)
    return box
  }
}
