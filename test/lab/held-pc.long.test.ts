import { expect, test } from 'vitest'
import { createLab, openConsole, start, startPcs, status } from '../support/lab.ts'
import { requireProgram } from '../support/require.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

const vpcs = requireProgram('vpcs')

for (const engine of ['embedded', 'vpcs'] as const) {
  const it = testWith(engine === 'vpcs' && vpcs)

  it(`a suspended pc of ${engine} is held, also for the next service, and is resumed unchanged`, async () => {
    const settings = { 'pc.engine': engine }
    const service = await TestService.start(settings)
    const lab = await createLab(service)
    await start(service, lab.pc1, lab.pc2)
    const [one, two] = [await openConsole(service, lab.pc1), await openConsole(service, lab.pc2)]
    one.type('ping 10.0.0.2 -c 2000 -i 20\r')
    await one.expect('icmp_seq=5 ')
    await service.call('POST', `${lab.pc1}/suspend`)
    expect(await status(service, lab.pc1)).toBe('suspended')
    // It answers nothing.
    two.type('ping 10.0.0.1 -c 2 -w 300 -i 20\r')
    const unheard = await two.expect('icmp_seq=2 ')
    expect(unheard).not.toContain('ttl=64')
    await two.expect('timeout')

    await service.kill('SIGKILL')
    await service.restart()
    expect(await status(service, lab.pc1)).toBe('suspended')
    // What it showed before it was held is all that it has shown.
    const again = await openConsole(service, lab.pc1)
    await service.call('POST', `${lab.pc1}/resume`)
    expect(await status(service, lab.pc1)).toBe('started')
    const shown = await again.expect(/icmp_seq=\d+ ttl=64[^\n]*\n(.*timeout\r\n){0,3}.*ttl=64/)
    const lost = await again.expect('ttl=64')
    expect((shown + lost).match(/timeout/g)?.length ?? 0).toBeLessThan(4)
    two.type('ping 10.0.0.1 -c 5 -i 20\r')
    await two.expect(/icmp_seq=\d ttl=64/)

    await service.call('POST', `${lab.pc1}/suspend`)
    await service.call('POST', `${lab.pc1}/stop`)
    expect(await status(service, lab.pc1)).toBe('stopped')
  })
}

test('corrupt between embedded pcs is loss, as they verify checksums', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const lab = await createLab(service)
  const console = await startPcs(service, lab)
  console.type('ping 10.0.0.2 -c 1\r')
  await console.expect('icmp_seq=1 ttl=64')
  await console.expect('PC1> ')
  const port = `${lab.pc1}/adapters/0/ports/0/nio`
  const { type, lport, rport, rhost } = await service.call('GET', port)
  await service.call('PUT', port, { type, lport, rport, rhost, filters: { corrupt: [100] } })
  for (const [protocol, name] of [
    ['-1', 'icmp'],
    ['-2', 'udp'],
  ] as const) {
    console.type(`ping 10.0.0.2 ${protocol} -c 20 -i 5 -w 50\r`)
    const shown = await console.expect(`${name}_seq=20 `)
    // One byte of a frame is changed, both ways: hardly ever one that says nothing, as the priority of a packet.
    expect(shown.match(/timeout/g)?.length).toBeGreaterThan(15)
    await console.expect('PC1> ')
  }
})
