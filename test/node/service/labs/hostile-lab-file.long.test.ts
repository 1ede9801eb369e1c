import { expect, test } from 'vitest'
import { hostileFiles } from '../../../support/hostile-files.ts'
import { TestService } from '../../../support/service.ts'

const largest = hostileFiles.find(({ name }) => name === 'as many nodes and links as a lab may have')

test('other requests are answered while the service reads the largest lab file that may be sent', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  await service.call('POST', '/v2/projects', { name: 'plan' })
  const order: string[] = []
  const plan = service
    .fetch('/v2/projects/plan/topology?dry_run=true', {
      method: 'PUT',
      headers: { 'content-type': 'application/yaml' },
      body: largest?.text() ?? '',
    })
    .then(async (answer) => {
      order.push('plan')
      return { status: answer.status, code: answer.headers.get('x-patchbay-error'), text: await answer.text() }
    })
  await service.call('GET', '/v2/version').then(() => order.push('version'))
  // The project was made without a lab file: the file itself was read to its end, and accepted.
  expect(await plan).toMatchObject({ status: 409, text: expect.stringContaining('take over the project') })
  expect(order).toEqual(['version', 'plan'])
})
