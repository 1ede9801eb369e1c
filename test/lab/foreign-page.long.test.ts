import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished } from 'vitest'
import { requireChromium, startChromium } from '../support/chromium.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

const browser = requireChromium()
const path = '/v2/compute/projects'
/** JSON that a form of the type text/plain can send: the "=" between name and value falls into a text. */
const [name, value] = ['{"name": "planted', '"}']

/** A site with one page, of another site than the service's: `localhost` instead of its address. */
async function siteWith(page: string): Promise<string> {
  const server = createServer((_, res) => void res.setHeader('Content-Type', 'text/html').end(page))
  onTestFinished(() => void server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `http://localhost:${(server.address() as AddressInfo).port}/`
}

testWith(browser)(
  'a page of another site changes nothing after a log-in with HTTP Basic',
  async () => {
    const service = await TestService.start({ user: 'anna', password: 'geheim' })
    const authorization = `Basic ${btoa('anna:geheim')}`
    const projects = async () => (await service.fetch(path, { headers: { authorization } })).json()
    const target = service.url + path
    const evil = await siteWith(`
      <form method="post" enctype="text/plain" action="${target}"><input name='${name}' value='${value}'></form>
      <script>
        const attempts = async () => {
          const body = '{"name": "planted"}'
          const tries = [
            () => fetch('${target}', { method: 'POST', mode: 'no-cors', credentials: 'include', body }),
            () => fetch('${target}', { method: 'POST', credentials: 'include', body }),
            () => fetch('${target}', { method: 'POST', mode: 'no-cors', credentials: 'include', body: new Blob([body]) }),
            () => navigator.sendBeacon('${target}', body),
            () => new Promise((resolve) => { const it = new WebSocket('${target.replace('http', 'ws')}'); it.onclose = resolve }),
          ]
          for (const attempt of tries) await Promise.resolve().then(attempt).catch(() => {})
        }
      </script>`)
    const chrome = await startChromium()
    const page = await chrome.newPage()
    await page.goto(`${service.url.replace('//', '//anna:geheim@')}/docs`)
    // The browser knows the credentials from here on, and sends them by itself.
    const own = await page.goto(target)
    expect([own?.status(), await own?.json()]).toEqual([200, []])
    await page.goto(evil)
    await page.evaluate('attempts()')
    const [answer] = await Promise.all([
      page.waitForResponse(target),
      page.evaluate('document.querySelector("form").submit()'),
    ])
    const sent = await answer.request().allHeaders()
    expect(sent.authorization).toBe(authorization)
    expect(sent['content-type']).toBe('text/plain')
    expect(answer.status()).toBe(403)
    // The answer is shown in the place of the page.
    await page.waitForURL(target)
    expect(await projects()).toEqual([])
    // A page of the service itself may.
    await page.goto(`${service.url}/docs`)
    const create = (type: string) =>
      page.evaluate(
        async ([to, type]) =>
          (await fetch(to, { method: 'POST', headers: { 'Content-Type': type }, body: '{"name": "x"}' })).status,
        [path, type] as const,
      )
    expect([await create('text/plain'), await create('application/json')]).toEqual([415, 201])
    expect(await projects()).toHaveLength(1)
  },
  120_000,
)
