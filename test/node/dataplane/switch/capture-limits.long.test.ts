import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { ethernet, linked, numbered, sendAll } from '../../../support/captured-link.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { packetPaths } from '../../../support/lan.ts'
import { hangMs } from '../../../support/limits.ts'
import { holds, openReader, readWhole, textsOf } from '../../../support/pcap.ts'
import { freePorts } from '../../../support/ports.ts'
import { requireRoot } from '../../../support/require.ts'
import { provided, testWith } from '../../../support/test-with.ts'

const root = requireRoot()

describe.each(packetPaths)('limits of captures on the %s packet path', (path) => {
  const base = freePorts(180)

  test('20,000 frames sent fast are in the file, or counted as missed', async () => {
    const { recorder, file, guest, accounted } = await linked(path, base + 120)
    await recorder.start(file, ethernet, 0)
    for (let index = 0; index < 20_000; index++) {
      guest.socket.send(numbered(index, 1200))
      // What is sent leaves at once, and a path in this thread needs its turns to take it.
      if (index % 200 === 199) await setImmediate()
    }
    const { frames, passed } = await accounted()
    expect(passed).toBeGreaterThan(1000)
    await recorder.stop()
    const { records } = await readWhole(file)
    expect(records.length).toBe(frames)
    expect(records.filter((it) => it.length !== 1200 || it.frame.length !== 1200)).toEqual([])
  })

  // The portable path has one thread, which cannot be kept from storing.
  testWith(provided(path === 'fast', 'only a path with a thread of its own can be faster than the file'))(
    'what comes faster than it can be stored is counted as missed, and the file stays whole',
    async () => {
      const { recorder, file, guest, accounted } = await linked(path, base + 160)
      await recorder.start(file, ethernet, 0)
      // Nothing is stored meanwhile, because this thread is busy; how much must come depends on what else the host does.
      const isMissing = () => (recorder.state?.missed ?? 0) > 0
      for (let index = 0; index < 500_000 && !(index % 500 === 0 && isMissing()); index++) {
        guest.socket.send(numbered(index, 1200))
      }
      const { frames, missed } = await accounted()
      expect(missed).toBeGreaterThan(0)
      guest.socket.send('and on')
      await holds(file, frames + 1)
      await recorder.stop()
      const { records } = await readWhole(file)
      expect(records.length).toBe(frames + 1)
      const numbers = records.slice(0, -1).map(({ frame }) => frame.readUInt32LE(0))
      expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b))
    },
    30_000,
  )

  testWith(root)('on a full disk a capture ends with a report and a whole record, and frames go on', async () => {
    const { recorder, guest, remote, failures } = await linked(path, base + 140)
    const file = join(await smallDisk(), 'full.pcap')
    const follower = await openReader()
    await recorder.start(file, ethernet, 0)
    recorder.follow(follower.socket, () => {})
    await sendAll(guest, remote, 300, 8000)
    await vi.waitFor(() => expect(failures).toHaveLength(1), { timeout: hangMs })
    expect(failures).toEqual([{ key: 'a', file, message: expect.any(String) }])
    expect(recorder.state).toBe(null)
    const { records } = await readWhole(file)
    expect(records.map(({ frame }) => frame.readUInt32LE(0))).toEqual(records.map((_, index) => index))
    await follower.ended
    expect(follower.bytes()).toEqual(readFileSync(file))
    await guest.send('still')
    await remote.holds(301)
    await recorder.stop()
    await recorder.start(join(await freshDirectory(), 'elsewhere.pcap'), ethernet, 0)
    expect(failures).toHaveLength(1)
  })

  test('a disk that is fuller than allowed ends a capture with a report, and not the streams beside it', async () => {
    const { recorder, file, guest, remote, failures } = await linked(path, base + 150)
    const live = await openReader()
    await recorder.stream(live.socket, ethernet, () => {})
    await recorder.start(file, ethernet, 2 ** 40)
    await guest.send('one')
    await vi.waitFor(() => expect(failures).toHaveLength(1), { timeout: hangMs })
    expect(failures).toEqual([{ key: 'a', file, message: 'the disk is nearly full' }])
    expect(recorder.state).toBe(null)
    expect(textsOf(await readWhole(file))).toEqual([])
    await guest.send('two')
    await remote.holds(2)
    expect(textsOf(await live.holds(2))).toEqual(['one', 'two'])
    await recorder.start(file, ethernet, 0)
    await guest.send('three')
    expect(textsOf(await holds(file, 1))).toEqual(['three'])
  })
})

/** A directory that holds 1 MB and not more. */
async function smallDisk(): Promise<string> {
  const directory = join(await freshDirectory(), 'disk')
  mkdirSync(directory)
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', directory])
  onTestFinished(() => void execFileSync('umount', ['-l', directory]))
  return directory
}
