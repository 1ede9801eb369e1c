import { expect } from 'vitest'
import { attach, createPc, openConsole, reserve, start } from '../support/lab.ts'
import { requireProgram } from '../support/require.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

const vpcs = requireProgram('vpcs')

testWith(vpcs)('embedded pcs keep their ports when the next service runs new pcs in VPCS', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'lab' })
  const project = `/v2/compute/projects/${project_id}`
  // So many that some have a port that is nine above that of another.
  const pcs = await Promise.all(Array.from({ length: 12 }, (_, index) => createPc(service, project, index + 1)))
  const pairs = pcs.slice(0, 6).map((pc, index) => [pc, pcs[index + 6] ?? ''] as const)
  for (const [one, two] of pairs) {
    const [a, b] = [await reserve(service, project), await reserve(service, project)]
    await attach(service, one, a, b)
    await attach(service, two, b, a)
  }
  await start(service, ...pcs)
  await service.kill('SIGKILL')
  await service.configure({ 'pc.engine': 'vpcs' })
  await service.restart()
  for (const [index, [one]] of pairs.entries()) {
    const console = await openConsole(service, one)
    console.type(`ping 10.0.0.${index + 7} -c 1\r`)
    await console.expect('icmp_seq=1 ttl=64')
  }
  expect(pairs).toHaveLength(6)
})
