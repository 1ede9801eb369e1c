import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { Miniflare, Response as WorkerResponse } from 'miniflare'
import { expect, onTestFinished, test } from 'vitest'
import { durableObjects, modulesOf, workerRules } from '../../scripts/run-worker.ts'
import { askAs, call } from '../support/organizations.ts'
import { workerBundle } from '../support/worker-bundle.ts'
import { adminToken } from '../support/worker-gateway.ts'

const team = 'team.cloudflareaccess.com'

test('requests of users of Cloudflare Access count for the limit of their organization', async () => {
  const { publicKey, privateKey } = await generateKeyPair('RS256', { extractable: true })
  const keys = { keys: [{ ...(await exportJWK(publicKey)), kid: '1', alg: 'RS256' }] }
  const worker = new Miniflare({
    ...modulesOf(await workerBundle()),
    ...(await workerRules()),
    bindings: {
      ...{ FLEET_KEY: 'a secret of tests that is long enough', ADMIN_TOKEN: adminToken },
      ...{ ACCESS_TEAM_DOMAIN: team, ACCESS_AUDIENCE: 'labs', ACCESS_ORGANIZATIONS: 'school.example=school' },
    },
    durableObjects,
    outboundService: () => WorkerResponse.json(keys),
  })
  onTestFinished(() => worker.dispose())
  const url = (await worker.ready).href.replace(/\/$/, '')
  const admin = askAs(() => url, adminToken)
  await call(admin, 'POST', '/v2/organizations', { organization_id: 'school', requests_per_s: 1 })
  const statement = await new SignJWT({ email: 'ada@school.example' })
    .setProtectedHeader({ alg: 'RS256', kid: '1' })
    .setIssuer(`https://${team}`)
    .setAudience('labs')
    .setExpirationTime('10m')
    .sign(privateKey)
  const ask = async () =>
    (await fetch(`${url}/v2/version`, { headers: { 'cf-access-jwt-assertion': statement } })).status
  expect(await ask()).toBe(200)
  expect(await Promise.all(Array.from({ length: 12 }, ask))).toContain(429)
})
