import { expect, onTestFinished, test, vi } from 'vitest'
import type { StoredFile } from '../../../../src/host-agent.ts'
import type { ArchiveLimits } from '../../../../src/labs/archives/archive-store.ts'
import type { ArchiveMember, ZipArchives } from '../../../../src/labs/archives/zip-archives.ts'
import type { LabListEvent } from '../../../../src/model/lab/event.ts'
import { labsInMemory, MemoryCompute, overriding } from '../../../support/memory-compute.ts'
import { MemoryLabs } from '../../../support/memory-labs.ts'

/** A compute whose labs have one file. */
function computeWith(file: () => Promise<Pick<StoredFile, 'content' | 'size'>>): MemoryCompute {
  const compute = new MemoryCompute()
  const { agent } = compute
  const files = { list: async () => [{ path: 'notes' }], read: file }
  return Object.assign(compute, { agent: () => overriding(agent(), { files }) })
}

const fileOf = (text: string) => async () => ({ content: new Blob([text]).stream(), size: text.length })

/** A file of which nothing comes after the first byte. `isCancelled`: whether its reader has left. */
function silentFile() {
  const state = { isRead: false, isCancelled: false }
  const content = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(new Uint8Array(1)),
    pull() {
      state.isRead = true
      return new Promise(() => {})
    },
    cancel: () => {
      state.isCancelled = true
    },
  })
  return { state, read: async () => ({ content, size: 2 }) }
}

/** The contents of the members, one after the other. */
const zip = {
  write(members: AsyncIterable<ArchiveMember>) {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
    const add = async () => {
      for await (const { content } of members) await content.pipeTo(writable, { preventClose: true })
      await writable.close()
    }
    add().catch((error: unknown) => writable.abort(error).catch(() => {}))
    return readable
  },
} as Partial<ZipArchives> as ZipArchives

/** Labs that are archived when they are closed. `close` makes a lab on a compute, closes it, and gives its id. */
async function archivingLabs(computes: Record<string, MemoryCompute>, limits?: ArchiveLimits) {
  const kept = new Map<string, string>()
  const warnings: string[] = []
  const labs = await labsInMemory(new MemoryCompute(), new MemoryLabs(), {
    others: new Map(Object.entries(computes)),
    zip,
    archiveStore: {
      write: async (id, content) => void kept.set(id, await new Response(content).text()),
      read: async () => undefined,
      remove: async (id) => void kept.delete(id),
      ...(limits !== undefined && { limits }),
    },
    warn: (message) => void warnings.push(message),
  })
  const close = async (compute_id: string) => {
    const { project_id } = await labs.creation.create(
      { name: `lab ${kept.size} of ${compute_id}`, compute_id },
      labs.computes.agent,
    )
    await labs.lifecycle.close(project_id, labs.computes.agent)
    return project_id
  }
  return { labs, kept, warnings, close }
}

test('a compute that sends nothing more delays the archives of its own labs only', async () => {
  const silent = silentFile()
  const { kept, close } = await archivingLabs({ silent: computeWith(silent.read), a: computeWith(fileOf('of a')) })
  await close('silent')
  await expect.poll(() => silent.state.isRead).toBe(true)
  const id = await close('a')
  await expect.poll(() => [...kept.keys()]).toEqual([id])
  expect(kept.get(id)).toContain('of a')
})

test('an archive that takes too long breaks off, and the lab is as before', async () => {
  // The time is over once the compute has sent what it sends, however long this host takes to get there.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const silent = silentFile()
  const limits = { ms: 60_000, bytes: 1000 }
  const { labs, kept, warnings, close } = await archivingLabs({ silent: computeWith(silent.read) }, limits)
  const id = await close('silent')
  const updates: LabListEvent[] = []
  labs.registry.listen((event) => void updates.push(event))
  await expect.poll(() => silent.state.isRead).toBe(true)
  vi.advanceTimersByTime(limits.ms)
  vi.useRealTimers()
  await expect
    .poll(() => warnings)
    .toEqual([
      expect.stringMatching(
        /was not archived \(it will be tried again\): Its computes did not send all files in 1 minutes/,
      ),
    ])
  expect([kept.size, silent.state.isCancelled]).toEqual([0, true])
  const status_reason =
    'It could not be archived (it will be tried again): Its computes did not send all files in 1 minutes'
  await expect
    .poll(() => labs.list(labs.computes.agent))
    .toMatchObject([{ project_id: id, status: 'closed', status_reason }])
  expect((await labs.find(id)).project().status_reason).toBe(status_reason)
  // A list that is open learns of it.
  await expect
    .poll(() => updates)
    .toEqual([{ action: 'project.updated', event: expect.objectContaining({ project_id: id, status_reason }) }])
  await labs.lifecycle.open(id, labs.computes.agent)
  expect((await labs.find(id)).project().status_reason).toBeUndefined()
  await labs.lifecycle.close(id, labs.computes.agent)
  // It is no longer in use.
  await labs.lifecycle.remove(id, labs.computes.agent)
})

test('an archive of more bytes than are kept breaks off before they are read', async () => {
  let isRead = false
  const readIt = () => {
    isRead = true
  }
  const large = async () => ({
    content: new ReadableStream<Uint8Array>({ pull: readIt }, { highWaterMark: 0 }),
    size: 1001,
  })
  const { kept, warnings, close } = await archivingLabs({ large: computeWith(large) }, { ms: 60_000, bytes: 1000 })
  onTestFinished(() => expect(isRead).toBe(false))
  await close('large')
  await expect.poll(() => warnings).toEqual([expect.stringMatching(/Its files have more than 1000 bytes/)])
  expect(kept.size).toBe(0)
})
