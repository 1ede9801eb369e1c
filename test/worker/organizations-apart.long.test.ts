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
} from '../support/organizations.ts'
import { adminToken, WorkerGateway } from '../support/worker-gateway.ts'

test('a token of one organization shows and changes nothing of another by any endpoint of the Worker, and gets no events of it', async () => {
  const gateway = await WorkerGateway.start({ RATE_PER_S: '0' })
  const as = (text: string): Ask => askAs(() => gateway.url, text)
  const admin = as(adminToken)
  const fill = async (name: string): Promise<Filled> => {
    const own = await makeOrganization(admin, name)
    const { id } = await joinCompute(gateway.url, as(own), name)
    return fillOrganization(name, as(own), own, id)
  }
  const [alpha, beta] = [await fill('alpha'), await fill('beta')]
  const feed = await alpha.ask('GET', '/v2/notifications')
  await staysApart(alpha.ask, beta)
  const { token } = await call(admin, 'POST', '/v2/tokens', { name: 'x', role: 'admin' })
  await staysApart(as(token ?? ''), beta)
  await call(alpha.ask, 'POST', '/v2/projects', { name: 'alpha-last' })
  let text = ''
  for await (const piece of feed.body as unknown as AsyncIterable<Uint8Array>) {
    text += new TextDecoder().decode(piece)
    if (text.includes('alpha-last')) break
  }
  expect(beta.markers.filter((it) => text.includes(it))).toEqual([])
})
