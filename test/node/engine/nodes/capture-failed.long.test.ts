import { execFileSync } from 'node:child_process'
import { rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import type { LabLink } from '../../../../src/model/lab/link.ts'
import { createLab, startPcs } from '../../../support/lab.ts'
import { hangMs } from '../../../support/limits.ts'
import { requireDevices } from '../../../support/require.ts'
import { TestService } from '../../../support/service.ts'
import { testWith } from '../../../support/test-with.ts'

// Whoever may make devices may mount, too: both take CAP_SYS_ADMIN.
const privileged = requireDevices()

testWith(privileged)('a capture whose disk is full is reported on the feed of its project', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const lab = await createLab(service)
  const port = `${lab.pc1}/adapters/0/ports/0`
  const capture = { capture_file_name: 'full.pcap' }
  const { pcap_file_path } = await service.call<{ pcap_file_path: string }>('POST', `${port}/start_capture`, capture)
  await service.call('POST', `${port}/stop_capture`)
  mountSmallDisk(dirname(pcap_file_path))
  const console = await startPcs(service, lab)
  const feed = await service.fetch(`${lab.project}/notifications`, { signal: AbortSignal.timeout(hangMs) })
  await service.call('POST', `${port}/start_capture`, capture)
  console.type('ping 10.0.0.2 -c 3 -i 20\r')
  const message = await firstError(feed)
  expect(message).toMatch(/^The capture of PC1 into full\.pcap ended: \S/)
  await console.expect('icmp_seq=3 ttl=64')
  expect(await service.call('GET', `${port}/nio`)).toMatchObject({ capture: null })
})

testWith(privileged)('a link whose capture has ended on a full disk is not captured any more', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const lab = '/v2/projects/full'
  const [address, other] = ['10.0.0.1', '10.0.0.2']
  await service.call('POST', '/v2/projects', { name: 'full' })
  for (const [name, ip] of [
    ['PC1', address],
    ['PC2', other],
  ])
    await service.call('POST', `${lab}/nodes`, {
      ...{ name, node_type: 'pc' },
      properties: { startup_script: `ip ${ip}/24` },
    })
  const { link_id } = await service.call<LabLink>('POST', `${lab}/links`, { nodes: ['PC1:e0', 'PC2:e0'] })
  const at = `${lab}/links/${link_id}`
  const begun = await service.call<LabLink>('POST', `${at}/start_capture`)
  await service.call('POST', `${at}/stop_capture`)
  mountSmallDisk(dirname(begun.capture_file_path ?? ''))
  expect(await service.call('POST', `${at}/start_capture`)).toMatchObject({ capturing: true })
  // Each pc announces its address.
  await service.call('POST', `${lab}/nodes/start`)
  await expect
    .poll(() => service.call('GET', at), { timeout: hangMs })
    .toMatchObject({
      ...{ capturing: false, capture_file_name: null, capture_file_path: null },
    })
})

testWith(privileged)('on a full disk no capture begins, also where the service keeps none of it free', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded', min_free_space_mb: 0 })
  const { pc1 } = await createLab(service)
  const port = `${pc1}/adapters/0/ports/0`
  const capture = { capture_file_name: 'full.pcap' }
  const { pcap_file_path } = await service.call<{ pcap_file_path: string }>('POST', `${port}/start_capture`, capture)
  await service.call('POST', `${port}/stop_capture`)
  const directory = dirname(pcap_file_path)
  mountSmallDisk(directory)
  await writeFile(join(directory, 'all of it'), Buffer.alloc(64 << 10))
  const answer = await service.fetch(`${port}/start_capture`, { method: 'POST', body: JSON.stringify(capture) })
  const message = 'capture_file_name: the disk is full; free some space first'
  expect([answer.status, await answer.json()]).toEqual([507, { message, status: 507 }])
  await rm(join(directory, 'all of it'))
  await service.call('POST', `${port}/start_capture`, capture)
})

/** Has a directory on a disk of its own that is smaller than what the service keeps free. */
function mountSmallDisk(directory: string): void {
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', directory])
  onTestFinished(() => void execFileSync('umount', ['-l', directory]))
}

/** The message of the next log.error on a feed; rejects with the feed's own bound. */
async function firstError(feed: Response): Promise<string> {
  let text = ''
  for await (const piece of feed.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += piece
    const lines = text.split('\n')
    text = lines.pop() ?? ''
    for (const line of lines) {
      const { action, event } = JSON.parse(line) as { action: string; event: { message: string } }
      if (action === 'log.error') return event.message
    }
  }
  throw new Error('the feed ended')
}
