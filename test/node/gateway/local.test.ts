import { expect, test } from 'vitest'
import { json, openFleet, StandIn } from '../../support/fleet.ts'
import { startFleetGateway } from '../../support/gateway.ts'

const local = '/v2/computes/local'

test('the idle PC of local is found by a compute that has the image', async () => {
  const [without, holder] = [await StandIn.start(), await StandIn.start()]
  holder.answer = (req, res) => {
    if (req.url === '/v2/compute/dynamips/images/c3745.bin') {
      const part = { 'Content-Range': 'bytes 0-0/9', 'Content-Length': '1', ETag: '"1"' }
      res.writeHead(206, { ...part, 'Last-Modified': new Date(0).toUTCString() })
      return void res.end('x')
    }
    if (req.url === '/v2/computes/local/auto_idlepc') return json(res, 200, { idlepc: '0x60608040' })
    json(res, 404, { message: 'There is nothing', status: 404 })
  }
  const { fleet } = await openFleet()
  await fleet.create(without.input())
  await fleet.create(holder.input({ compute_id: 'two' }))
  const { app } = startFleetGateway(fleet)
  const body = JSON.stringify({ platform: 'c3745', image: 'c3745.bin', ram: 256 })
  const answer = await app.fetch(new Request(`http://localhost${local}/auto_idlepc`, { method: 'POST', body }))
  expect([answer.status, await answer.json()]).toEqual([200, { idlepc: '0x60608040' }])
  expect(answer.headers.get('x-patchbay-compute')).toBe('two')
  expect(without.asked).not.toContain('POST /v2/computes/local/auto_idlepc')
})
