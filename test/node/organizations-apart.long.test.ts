import { expect, test } from 'vitest'
import {
  type Ask,
  askAs,
  call,
  type Filled,
  fillOrganization,
  joinCompute,
  makeOrganization,
  staysApart,
  untilRunning,
} from '../support/organizations.ts'
import { TestService } from '../support/service.ts'

test('a token of one organization shows and changes nothing of another by any endpoint, and gets no events of it, after a restart', async () => {
  const token = 'admin-of-tests-0123456789'
  const gateway = await TestService.start({ gateway: true, token, 'rate_limit.per_s': 0 })
  const as = (text: string): Ask => askAs(() => gateway.url, text)
  const admin = as(token)
  const fill = async (name: string): Promise<Filled> => {
    const own = await makeOrganization(admin, name)
    const { id } = await joinCompute(gateway.url, as(own), name)
    return fillOrganization(name, as(own), own, id)
  }
  const [alpha, beta] = [await fill('alpha'), await fill('beta')]
  const { port } = new URL(gateway.url)
  await gateway.end()
  await gateway.restart(Number(port))
  for (const one of [alpha, beta]) await untilRunning(one)

  const feed = await alpha.ask('GET', '/v2/notifications')
  await staysApart(alpha.ask, beta)
  const { token: ofDefault } = await call(admin, 'POST', '/v2/tokens', { name: 'x', role: 'admin' })
  await staysApart(as(ofDefault ?? ''), beta)
  await call(alpha.ask, 'POST', '/v2/projects', { name: 'alpha-last' })
  let text = ''
  for await (const piece of feed.body as unknown as AsyncIterable<Uint8Array>) {
    text += new TextDecoder().decode(piece)
    if (text.includes('alpha-last')) break
  }
  expect(beta.markers.filter((it) => text.includes(it))).toEqual([])
})
