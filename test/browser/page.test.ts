import { gzipSync } from 'node:zlib'
import { beforeAll, expect, test } from 'vitest'
import { bundleBrowser } from '../../scripts/bundle-browser.js'

let files: Map<string, string>
beforeAll(async () => {
  files = await bundleBrowser()
})

const kb = (texts: readonly (string | undefined)[]) =>
  texts.reduce((sum, text) => sum + gzipSync(text ?? '', { level: 9 }).length, 0) / 1024

test('the first load is at most 65 KB compressed, and all parts together 290 KB', () => {
  const page = files.get('index.html') ?? ''
  const named = [...page.matchAll(/"\/app\/([^"]+)"/g)].map(([, name = '']) => name)
  expect(named.length).toBeGreaterThanOrEqual(2)
  expect(kb([page, ...named.map((name) => files.get(name))])).toBeLessThan(65)
  // The documents for assistants are beside the page, which never loads them.
  const parts = [...files].filter(([name]) => name !== 'assistant-pages.json')
  expect(kb(parts.map(([, text]) => text))).toBeLessThan(290)
  // The larger parts are loaded when they are wanted.
  for (const [part, most] of [
    ['terminal', 105],
    ['screen', 60],
    ['arrange', 7],
  ] as const) {
    const [name, text] = [...files].find(([name]) => name.startsWith(`${part}-`)) ?? []
    expect(name).toBeDefined()
    expect(named).not.toContain(name)
    expect(kb([text])).toBeLessThan(most)
  }
})

test('the page has no script and no style of its own that the policy would refuse', () => {
  const page = files.get('index.html') ?? ''
  expect(page).not.toMatch(/<script(?![^>]*\bsrc=)|\son\w+=|https?:\/\/(?!www\.w3\.org)/)
})
