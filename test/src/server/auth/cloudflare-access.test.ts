import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { expect, test } from 'vitest'
import { cloudflareAccess } from '../../../../src/server/auth/cloudflare-access.ts'

const teamDomain = 'team.cloudflareaccess.com'
const audience = 'a'.repeat(64)

/** A team, and a service that lets in its people. `keys.down`: what asking for the keys fails with. */
async function team() {
  const { publicKey, privateKey } = await generateKeyPair('RS256', { extractable: true })
  const keys: { asked: string[]; down?: () => Promise<Response> } = { asked: [] }
  const verify = cloudflareAccess({
    ...{ teamDomain, audience, role: 'operate', admins: ['Anna@Lab.example', 'eve@school.example'] },
    organizations: { 'school.example': 'school' },
    async fetch(url) {
      keys.asked.push(url)
      return keys.down?.() ?? Response.json({ keys: [{ ...(await exportJWK(publicKey)), kid: '1', alg: 'RS256' }] })
    },
  })
  const statement = (claims: object, { key = privateKey, expires = '1m', aud = audience, kid = '1' } = {}) =>
    new SignJWT({ type: 'app', ...claims })
      .setProtectedHeader({ alg: 'RS256', kid })
      .setIssuer(`https://${teamDomain}`)
      .setAudience(aud)
      .setIssuedAt()
      .setExpirationTime(expires)
      .sign(key)
  const identify = (text?: string) =>
    verify(
      new Request('http://localhost/', { headers: text === undefined ? {} : { 'Cf-Access-Jwt-Assertion': text } }),
      undefined,
    )
  return { keys, statement, identify }
}

test('users of the team are accepted, each with their role', async () => {
  const { keys, statement, identify } = await team()
  expect(await identify(await statement({ email: 'ben@lab.example' }))).toEqual({
    ...{ name: 'ben@lab.example', role: 'operate', key: 'access:ben@lab.example', ambient: true },
  })
  expect(await identify(await statement({ email: 'anna@lab.example' }))).toMatchObject({ role: 'admin' })
  expect(await identify(await statement({ email: 'anna@lab.example' }))).toMatchObject({ isOfDeployment: true })
  // An administrator whose domain is that of an organization is one of it alone.
  expect(await identify(await statement({ email: 'eve@School.example' }))).toEqual({
    ...{ name: 'eve@school.example', role: 'admin', key: 'access:eve@school.example', ambient: true },
    organization: 'school',
  })
  // A service token has a name only; that of an admin makes it none.
  expect(await identify(await statement({ email: '', common_name: 'anna@lab.example' }))).toMatchObject({
    ...{ name: 'anna@lab.example', role: 'operate' },
  })
  expect(keys.asked).toEqual([`https://${teamDomain}/cdn-cgi/access/certs`])
})

test('all others are refused', async () => {
  const { statement, identify } = await team()
  const email = { email: 'anna@lab.example' }
  const stranger = await generateKeyPair('RS256')
  const good = await statement(email)
  const wrong = [
    ...[undefined, '', 'x', 'a.b.c', good.replace(/\.[^.]*$/, '.'), good.replace(/^[^.]*/, btoa('{"alg":"none"}'))],
    await statement(email, { key: stranger.privateKey }),
    await statement(email, { expires: '-1m' }),
    await statement(email, { aud: 'another' }),
    await statement(email, { kid: '2' }),
    await statement({ ...email, nbf: Date.now() }),
  ]
  for (const text of wrong) expect([text, await identify(text)]).toEqual([text, undefined])
})

test('without the keys an error says so, and users are accepted when the keys can be read', async () => {
  const { keys, statement, identify } = await team()
  const text = await statement({ email: 'ben@lab.example' })
  for (const down of [
    async () => Promise.reject(new TypeError('no way there')),
    async () => new Response('', { status: 500 }),
    async () => new Response('<html>'),
    async () => Response.json({ keys: 'none' }),
  ]) {
    keys.down = down
    await expect(identify(text)).rejects.toMatchObject({ status: 503, headers: { 'Retry-After': '5' } })
  }
  delete keys.down
  expect(await identify(text)).toMatchObject({ role: 'operate' })
})
