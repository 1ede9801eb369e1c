import { join } from 'node:path'
import { build } from 'esbuild'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { Miniflare, Response as WorkerResponse } from 'miniflare'
import { expect, onTestFinished, test } from 'vitest'
import { basic, bearer } from '../../../support/auth-app.ts'

const team = 'https://team.cloudflareaccess.com'

test('tokens and Cloudflare Access work in workerd', async () => {
  const { publicKey, privateKey } = await generateKeyPair('RS256', { extractable: true })
  const keys = { keys: [{ ...(await exportJWK(publicKey)), kid: '1', alg: 'RS256' }] }
  const asked: string[] = []
  const { outputFiles } = await build({
    entryPoints: [join(import.meta.dirname, '../../../support/auth-worker.ts')],
    ...{ bundle: true, format: 'esm', target: 'es2023', write: false, conditions: ['workerd', 'worker', 'import'] },
  })
  const worker = new Miniflare({
    modules: [{ type: 'ESModule', path: 'worker.js', contents: outputFiles?.[0]?.text ?? '' }],
    compatibilityDate: '2026-07-01',
    outboundService(request: { url: string }) {
      asked.push(request.url)
      return WorkerResponse.json(keys)
    },
  })
  onTestFinished(() => worker.dispose())
  const base = (await worker.ready).href.replace(/\/$/, '')
  const send = (method: string, path: string, headers: Record<string, string>, body?: object) =>
    fetch(base + path, { method, headers, ...(body && { body: JSON.stringify(body) }) })
  const made = await send('POST', '/v2/tokens', { authorization: bearer('t0ken') }, { name: 'ops', role: 'operate' })
  expect(made.status).toBe(201)
  const { token, token_id } = (await made.json()) as { token: string; token_id: string }
  const status = async (method: string, path: string, headers: Record<string, string>) =>
    (await send(method, path, headers)).status
  const reload = '/v2/compute/config/reload'
  // At once: what requests share must not be waited for by others.
  const versions = Array.from({ length: 10 }, () => status('GET', '/v1/version', { authorization: basic('x', token) }))
  expect(new Set(await Promise.all(versions))).toEqual(new Set([200]))
  expect(await status('POST', reload, { authorization: bearer(token) })).toBe(403)
  expect(await status('DELETE', `/v2/tokens/${token_id}`, { authorization: bearer('t0ken') })).toBe(204)
  expect(await status('GET', '/v1/version', { authorization: bearer(token) })).toBe(401)
  const as = async (email: string) => ({
    'cf-access-jwt-assertion': await new SignJWT({ email })
      .setProtectedHeader({ alg: 'RS256', kid: '1' })
      .setIssuer(team)
      .setAudience('lab')
      .setExpirationTime('1m')
      .sign(privateKey),
  })
  const [anna, ben] = [await as('anna@lab.example'), await as('ben@lab.example')]
  const people = Array.from({ length: 10 }, () => status('GET', '/v1/version', ben))
  expect(new Set(await Promise.all(people))).toEqual(new Set([200]))
  expect([await status('POST', reload, ben), await status('POST', reload, anna)]).toEqual([403, 200])
  expect(await status('POST', reload, { ...anna, origin: 'https://evil.example' })).toBe(403)
  expect(new Set(asked)).toEqual(new Set([`${team}/cdn-cgi/access/certs`]))
})
