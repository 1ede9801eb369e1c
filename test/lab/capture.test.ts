import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { createLab, openConsole, start } from '../support/lab.ts'
import { collect, readWhole } from '../support/pcap.ts'
import { requireProgram } from '../support/require.ts'
import { portRanges, TestService } from '../support/service.ts'

const tshark = requireProgram('tshark')
const vpcs = requireProgram('vpcs')
const engines = [
  ['embedded', 62],
  ['vpcs', 65],
] as const

interface NioState {
  readonly counters: { readonly out_frames: number; readonly in_frames: number }
  readonly capture: { readonly pcap_file_path: string; readonly frames: number; readonly missed: number } | null
}

for (const [engine, file] of engines) {
  const it = test.skipIf(tshark.skip || (engine === 'vpcs' && vpcs.skip))

  it(`the capture of ${engine} pcs that ping each other has every frame that was counted`, async () => {
    const service = await TestService.start({ ...portRanges(file), 'pc.engine': engine })
    const lab = await createLab(service)
    await start(service, lab.pc1, lab.pc2)
    const console = await openConsole(service, lab.pc1)
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

    const count = (read: string, filter: string) => fields(read, filter, 'frame.number').length
    expect(count(pcap_file_path, 'icmp')).toBe(10)
    expect(count(pcap_file_path, 'icmp.type == 8 && ip.src == 10.0.0.1 && ip.dst == 10.0.0.2')).toBe(5)
    expect(count(pcap_file_path, 'icmp.type == 0 && ip.src == 10.0.0.2 && ip.dst == 10.0.0.1')).toBe(5)
    expect(count(pcap_file_path, 'frame')).toBe(passed(after) - before)
    expect(count(pcap_file_path, '_ws.malformed || frame.len != frame.cap_len')).toBe(0)

    await service.call('DELETE', `${port}/nio`)
    await Promise.all([live?.ended, ng?.ended])
    expect(live?.bytes()).toEqual(readFileSync(pcap_file_path))
    writeFileSync(`${service.data}/live.pcapng`, ng?.bytes() ?? '')
    expect(fields(`${service.data}/live.pcapng`, 'icmp', 'frame.interface_name')).toEqual(Array(10).fill('PC1 0/0'))
  })

  it(`the capture of ${engine} pcs goes on while the service is killed with -9 and started again`, async () => {
    const service = await TestService.start({ ...portRanges(file + 1), 'pc.engine': engine })
    const lab = await createLab(service)
    await start(service, lab.pc1, lab.pc2)
    const console = await openConsole(service, lab.pc1)
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
    const numbers = fields(pcap_file_path, 'icmp.type == 8', 'icmp.seq').map(Number)
    expect(numbers.length).toBeGreaterThanOrEqual(40)
    expect(numbers).toEqual(numbers.map((_, index) => index + (numbers[0] ?? 0)))
  })
}

/** One field of every frame that passes the display filter, as tshark has it. */
function fields(file: string, filter: string, field: string): string[] {
  const args = ['-r', file, '-Y', filter, '-T', 'fields', '-e', field]
  return String(execFileSync('tshark', args, { stdio: ['ignore', 'pipe', 'ignore'] }))
    .split('\n')
    .filter((line) => line !== '')
}
