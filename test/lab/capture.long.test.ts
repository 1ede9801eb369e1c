import { readFileSync, writeFileSync } from 'node:fs'
import { expect } from 'vitest'
import { createLab, startPcs } from '../support/lab.ts'
import { collect, readWhole } from '../support/pcap.ts'
import { requireProgram } from '../support/require.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'
import { tshark } from '../support/tshark.ts'

const reader = requireProgram('tshark')
const vpcs = requireProgram('vpcs')

interface NioState {
  readonly counters: { readonly out_frames: number; readonly in_frames: number }
  readonly capture: { readonly pcap_file_path: string; readonly frames: number; readonly missed: number } | null
}

for (const engine of ['embedded', 'vpcs']) {
  const it = testWith(reader, engine === 'vpcs' && vpcs)

  it(`the capture of ${engine} pcs that ping each other has every frame that was counted`, async () => {
    const service = await TestService.start({ 'pc.engine': engine })
    const lab = await createLab(service)
    const console = await startPcs(service, lab)
    console.type('ping 10.0.0.2 -c 1\r')
    await console.expect('icmp_seq=1 ttl=64')

    const port = `${lab.pc1}/adapters/0/ports/0`
    const nio = () => service.call<NioState>('GET', `${port}/nio`)
    const passed = ({ counters }: NioState) => counters.out_frames + counters.in_frames
    const before = passed(await nio())
    const { pcap_file_path } = await service.call<{ pcap_file_path: string }>('POST', `${port}/start_capture`, {
      capture_file_name: `${engine}.pcap`,
    })
    const [live, ng] = await Promise.all(
      ['', '?format=pcapng'].map(async (query) =>
        collect(await service.fetch(`${port}/capture/stream${query}`, { method: 'POST', body: '{}' })),
      ),
    )
    console.type('ping 10.0.0.2 -c 5 -i 50\r')
    await console.expect('icmp_seq=5 ttl=64')
    await expect.poll(async () => (await nio()).capture?.frames).toBe(passed(await nio()) - before)
    const after = await nio()
    expect(after.capture).toMatchObject({ pcap_file_path, missed: 0 })
    await service.call('POST', `${port}/stop_capture`)

    const read = ['icmp.type', 'ip.src', 'ip.dst', '_ws.malformed', 'frame.len', 'frame.cap_len']
    const frames = await tshark(pcap_file_path, read)
    const icmp = frames.map((frame) => frame.slice(0, 3).join(' ')).filter((it) => /^\d/.test(it))
    const [asked, answered] = ['8 10.0.0.1 10.0.0.2', '0 10.0.0.2 10.0.0.1']
    expect(icmp.toSorted()).toEqual([...Array(5).fill(answered), ...Array(5).fill(asked)])
    expect(frames).toHaveLength(passed(after) - before)
    for (const [, , , malformed, length, captured] of frames) expect([malformed, captured]).toEqual(['', length])

    await service.call('DELETE', `${port}/nio`)
    await Promise.all([live?.ended, ng?.ended])
    expect(live?.bytes()).toEqual(readFileSync(pcap_file_path))
    writeFileSync(`${service.data}/live.pcapng`, ng?.bytes() ?? '')
    const names = await tshark(`${service.data}/live.pcapng`, ['frame.interface_name'], 'icmp')
    expect(names).toEqual(Array(10).fill(['PC1 0/0']))
  })

  it(`the capture of ${engine} pcs goes on while the service is killed with -9 and started again`, async () => {
    const service = await TestService.start({ 'pc.engine': engine })
    const lab = await createLab(service)
    const console = await startPcs(service, lab)
    const port = `${lab.pc1}/adapters/0/ports/0`
    const { pcap_file_path } = await service.call<{ pcap_file_path: string }>('POST', `${port}/start_capture`, {
      capture_file_name: 'survives.pcap',
    })
    const cutOff = collect(await service.fetch(`${port}/pcap`))
    console.type('ping 10.0.0.2 -c 1000 -i 20\r')
    await console.expect('icmp_seq=3 ')
    await service.kill('SIGKILL')
    await expect(cutOff.ended).rejects.toThrow()
    await console.expect('icmp_seq=20 ')
    await service.restart()

    const { capture } = await service.call<NioState>('GET', `${port}/nio`)
    expect(capture).toMatchObject({ pcap_file_path, missed: 0 })
    const again = await service.fetch(`${port}/start_capture`, {
      method: 'POST',
      body: '{"capture_file_name":"other.pcap"}',
    })
    expect(again.status).toBe(409)
    const stream = collect(await service.fetch(`${port}/pcap`))
    await console.expect('icmp_seq=40 ')
    await service.call('POST', `${port}/stop_capture`)
    await stream.ended
    expect(stream.bytes()).toEqual(readFileSync(pcap_file_path))
    await readWhole(pcap_file_path)
    const numbers = (await tshark(pcap_file_path, ['icmp.seq'], 'icmp.type == 8')).map(([number]) => Number(number))
    expect(numbers.length).toBeGreaterThanOrEqual(40)
    expect(numbers).toEqual(numbers.map((_, index) => index + (numbers[0] ?? 0)))
  })
}
