import { expect } from 'vitest'
import { attach, createPc, openConsole, reserve, start, status } from '../support/lab.ts'
import { portRanges } from '../support/ports.ts'
import { requireProgram } from '../support/require.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

const vpcs = requireProgram('vpcs')
const qemu = requireProgram('qemu-system-x86_64')

const pairs = 20
const machines = 4
const rounds = 2

testWith(vpcs, qemu)(
  '40 VPCS pcs and machines that start together have a port each, and all links work, every time',
  async () => {
    const service = await TestService.start({ ...portRanges({ udp: 330 }), 'pc.engine': 'vpcs' })
    const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'lab' })
    const project = `/v2/compute/projects/${project_id}`
    const pcs = await Promise.all(
      Array.from({ length: 2 * pairs }, (_, index) => createPc(service, project, index + 1)),
    )
    for (let pair = 0; pair < pairs; pair++) {
      const [a, b] = [await reserve(service, project), await reserve(service, project)]
      await attach(service, pcs[2 * pair] ?? '', a, b)
      await attach(service, pcs[2 * pair + 1] ?? '', b, a)
    }
    const others = await Promise.all(
      Array.from({ length: machines }, async () => {
        const settings = { name: 'M', platform: 'x86_64', ram: 32, console_type: 'telnet' }
        const nodes = `${project}/machine-emulator/nodes`
        return `${nodes}/${(await service.call<{ node_id: string }>('POST', nodes, settings)).node_id}`
      }),
    )
    for (let round = 0; round < rounds; round++) {
      await start(service, ...pcs, ...others)
      await Promise.all(
        Array.from({ length: pairs }, async (_, pair) => {
          const console = await openConsole(service, pcs[2 * pair] ?? '')
          console.type(`ping 10.0.0.${2 * pair + 2} -c 60\r`)
          await console.expect(/icmp_seq=\d ttl=64/)
        }),
      )
      const links = await Promise.all(
        pcs.map((pc) => service.call<{ link: string }>('GET', `${pc}/adapters/0/ports/0/nio`)),
      )
      expect(links.map(({ link }) => link)).toEqual(pcs.map(() => 'ok'))
      expect(await Promise.all([...pcs, ...others].map((node) => status(service, node)))).not.toContain('stopped')
      await Promise.all([...pcs, ...others].map((node) => service.call('POST', `${node}/stop`)))
    }
  },
)
