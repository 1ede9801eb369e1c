import { expect } from 'vitest'
import { confinedService } from '../support/confined.ts'
import { byOther, byRoot, confinementTests, newNode, newProject } from '../support/confinement-tests.ts'
import { requireProgram } from '../support/require.ts'
import { testWith } from '../support/test-with.ts'

confinementTests([
  { by: 'bubblewrap', ...byRoot },
  { by: 'namespaces', ...byOther },
])

testWith(requireProgram('vpcs'))(
  'outside local mode the console of a pc reaches no port of the host: VPCS is not run',
  async () => {
    const service = await confinedService('auto')
    const pc = await newNode(service, await newProject(service), 'pc', { name: 'PC1' })
    await service.call('POST', `${pc}/start`)
    expect(await service.call('GET', pc)).toMatchObject({ engine: 'embedded' })
    await service.configure({ local: false, 'pc.engine': 'vpcs' })
    await service.call('POST', `${pc}/stop`)
    await service.end()
    await service.restart()
    const answer = await service.fetch(`${pc}/start`, { method: 'POST', body: '{}' })
    expect([answer.status, await answer.json()]).toMatchObject([
      409,
      { message: expect.stringContaining('VPCS runs in local mode only') },
    ])
  },
)
