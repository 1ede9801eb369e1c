import { expect, test } from 'vitest'
import { Sessions } from '../../../../src/server/auth/sessions.ts'
import { signingKey } from '../../../../src/server/auth/signed-text.ts'
import { ask, authApp, basic, bearer } from '../../../support/auth-app.ts'

const credentials = { user: 'anna', password: 'geheim-geheim' }

function openApp() {
  const key = signingKey('a secret of tests that is long enough', 'sessions')
  const sessions = new Sessions({ key: () => key, keeper: { holds: async () => true, end: async () => {} } })
  return authApp({ access: { ...credentials, token: 'known-token', hosts: new Set(['lab.example']) }, sessions })
}

test('a page whose own name leads to the service cannot try passwords or tokens by a log-in', async () => {
  const app = openApp()
  const logIn = async (body: object, headers: Record<string, string>) =>
    (await ask(app, 'POST', '/v2/session', { 'content-type': 'application/json', body, ...headers })).status
  const rebound = { host: 'evil.example:3080', origin: 'http://evil.example:3080' }
  const guess = { ...credentials, password: 'guess' }
  // Right and wrong ones get the same answer, also without Origin.
  for (const headers of [rebound, { host: 'evil.example' }])
    for (const body of [credentials, guess, { token: 'known-token' }, { token: 'guess' }])
      expect(await logIn(body, headers)).toBe(403)
  const names = ['lab.example', 'lab.example:3080', '203.0.113.7:3080', '[2001:db8::7]:3080']
  for (const host of names) {
    expect(await logIn(credentials, { host, origin: `http://${host}` })).toBe(201)
    expect(await logIn(guess, { host, origin: `http://${host}` })).toBe(401)
  }
  // A proxy that is not known speaks TLS: the page has a certificate for its name.
  expect(await logIn(credentials, { host: 'other.example', origin: 'https://other.example' })).toBe(201)
})

test('nor by Basic, while programs may use any name', async () => {
  const app = openApp()
  const status = async (headers: Record<string, string>) =>
    (await ask(app, 'GET', '/v2/compute/version', { host: 'evil.example:3080', ...headers })).status
  const firefox = { 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0' }
  for (const authorization of [basic('anna', 'geheim-geheim'), basic('anna', 'guess')])
    for (const page of [firefox, { origin: 'http://evil.example:3080' }, { 'sec-fetch-site': 'same-origin' }])
      expect(await status({ authorization, ...page })).toBe(403)
  expect(await status({ authorization: basic('anna', 'geheim-geheim') })).toBe(200)
  expect(await status({ authorization: basic('anna', 'geheim-geheim'), 'user-agent': 'curl/8' })).toBe(200)
  expect(await status({ authorization: bearer('known-token'), ...firefox })).toBe(200)
})
