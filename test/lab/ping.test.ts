import { expect, test } from 'vitest'
import { attach, createLab, openConsole, reserve, start, startPcs } from '../support/lab.ts'
import { requireProgram } from '../support/require.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

const vpcs = requireProgram('vpcs')

test('two embedded pcs ping each other', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const lab = await createLab(service)
  const console = await startPcs(service, lab)
  console.type('ping 10.0.0.2 -c 3 -i 50\r')
  await console.expect('10.0.0.2 icmp_seq=3 ttl=64')
})

testWith(vpcs)('two VPCS ping each other', async () => {
  const service = await TestService.start({ 'pc.engine': 'vpcs' })
  const lab = await createLab(service)
  const console = await startPcs(service, lab)
  console.type('ping 10.0.0.2 -c 3 -i 50\r')
  await console.expect('10.0.0.2 icmp_seq=3 ttl=64')
})

testWith(vpcs)('a pc of one engine pings a pc of the other, both ways', async () => {
  const service = await TestService.start({ 'pc.engine': 'vpcs' })
  const lab = await createLab(service)
  await start(service, lab.pc1)
  await service.configure({ 'pc.engine': 'embedded' })
  await service.call('POST', '/v1/config/reload', {})
  await start(service, lab.pc2)
  expect(await service.call('GET', lab.pc1)).toMatchObject({ engine: 'vpcs' })
  expect(await service.call('GET', lab.pc2)).toMatchObject({ engine: 'embedded' })
  const [one, two] = [await openConsole(service, lab.pc1), await openConsole(service, lab.pc2)]
  one.type('ping 10.0.0.2 -c 2 -i 50\r')
  await one.expect('10.0.0.2 icmp_seq=2 ttl=64')
  two.type('ping 10.0.0.1 -c 2 -i 50\r')
  await two.expect('10.0.0.1 icmp_seq=2 ttl=64')
})

test('a link is removed and another one attached while the pcs run', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const lab = await createLab(service)
  const console = await startPcs(service, lab)
  console.type('ping 10.0.0.2 -c 1\r')
  await console.expect('icmp_seq=1 ttl=64')
  await service.call('DELETE', `${lab.pc2}/adapters/0/ports/0/nio`)
  await console.expect('PC1> ')
  console.type('ping 10.0.0.2 -c 1 -w 200\r')
  await console.expect(/timeout|not reachable/)
  const [a, b] = [await reserve(service, lab.project), await reserve(service, lab.project)]
  await attach(service, lab.pc1, a, b)
  await attach(service, lab.pc2, b, a)
  await console.expect('PC1> ')
  console.type('ping 10.0.0.2 -c 1\r')
  await console.expect('icmp_seq=1 ttl=64')
})

testWith(vpcs)('Ctrl-C on the console of VPCS ends a ping', async () => {
  const service = await TestService.start({ 'pc.engine': 'vpcs' })
  const lab = await createLab(service)
  const console = await startPcs(service, lab)
  console.type('ping 10.0.0.2 -c 100000 -i 50\r')
  await console.expect('icmp_seq=2 ttl=64')
  console.type('\x03')
  // Once for the ping, and once for the key.
  for (const _ of [1, 2]) await console.expect('PC1> ')
  console.type('ping 10.0.0.2 -c 2 -i 50\r')
  await console.expect('icmp_seq=2 ttl=64')
})
