import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { Recorder } from '../../../../runtime/node/dataplane/capture/recorder.ts'
import type { Filter } from '../../../../runtime/node/dataplane/filters/index.ts'
import { Counters } from '../../../../runtime/node/dataplane/switch/core/counters.ts'
import { ethernet, linked } from '../../../support/captured-link.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { lan, packetPaths, udp } from '../../../support/lan.ts'
import { holds, readWhole, textsOf } from '../../../support/pcap.ts'
import { freePorts } from '../../../support/ports.ts'

describe.each(packetPaths)('captures on the %s packet path', (path) => {
  const base = freePorts(80)

  test('a file holds the frames of both directions with their times and lengths while it is written', async () => {
    const { recorder, file, guest, remote, lport } = await linked(path, base)
    await recorder.start(file, ethernet, 0)
    const before = Date.now()
    await guest.send('out')
    expect(await remote.next()).toBe('out')
    const after = Date.now()
    const { records } = await holds(file, 1)
    await remote.send('a longer one, in', lport)
    expect(await guest.next()).toBe('a longer one, in')
    const pcap = await holds(file, 2)
    expect(pcap.linkType).toBe(ethernet)
    expect(textsOf(pcap)).toEqual(['out', 'a longer one, in'])
    expect(pcap.records.map(({ length }) => length)).toEqual([3, 16])
    // The clock of the path may be 5 ms from the system's.
    expect(records[0]?.time).toBeGreaterThan(before - 10)
    expect(records[0]?.time).toBeLessThan(after + 10)
    expect(pcap.records[1]?.time).toBeGreaterThan(records[0]?.time ?? Number.NaN)
    expect(recorder.state).toEqual({ file, link_type: ethernet, frames: 2, missed: 0 })
  })

  test('both ends of a link in one switch are captured, each into its own file', async () => {
    const { lan: it, guests } = await lan(path, 'a', 'b')
    const [a, b] = guests
    await it.attach('a', udp(base + 11, base + 12))
    await it.attach('b', udp(base + 12, base + 11))
    const directory = await freshDirectory()
    const files = ['a', 'b'].map((key) => join(directory, `${key}.pcap`))
    await it.captured('a').start(files[0] ?? '', ethernet, 0)
    await it.captured('b').start(files[1] ?? '', ethernet, 0)
    await a.send('one')
    expect(await b.next()).toBe('one')
    await b.send('two')
    expect(await a.next()).toBe('two')
    for (const file of files) expect(textsOf(await holds(file, 2))).toEqual(['one', 'two'])
  })

  test('dropped frames are not in the file', async () => {
    const filters: Filter[] = [{ type: 'frequency_drop', every: 2 }]
    const { recorder, file, guest, counted } = await linked(path, base + 20, filters)
    await recorder.start(file, ethernet, 0)
    for (const frame of ['1', 'dropped', '3', 'dropped', '5']) await guest.send(frame)
    await counted(({ dropped, out_frames }) => expect([dropped.frequency_drop, out_frames]).toEqual([2, 3]))
    await recorder.stop()
    expect(textsOf(await readWhole(file))).toEqual(['1', '3', '5'])
  })

  test('a frame that a filter duplicated is captured twice', async () => {
    const { recorder, file, guest, remote } = await linked(path, base + 30, [{ type: 'duplicate', percent: 100 }])
    await recorder.start(file, ethernet, 0)
    await guest.send('twice')
    await remote.holds(2)
    await recorder.stop()
    expect(textsOf(await readWhole(file))).toEqual(['twice', 'twice'])
  })

  test('a stop leaves a complete file with all frames before it, and frames still pass', async () => {
    const { recorder, file, guest, remote } = await linked(path, base + 40)
    await recorder.start(file, ethernet, 0)
    const frames = Array.from({ length: 100 }, (_, index) => `frame ${index}`)
    for (const frame of frames) await guest.send(frame)
    await remote.holds(frames.length)
    await recorder.stop()
    expect(recorder.state).toBe(null)
    await guest.send('later')
    await remote.holds(frames.length + 1)
    expect(textsOf(await readWhole(file))).toEqual(frames)
    await recorder.stop()
  })

  test('a second start is refused, and the capture goes on', async () => {
    const { recorder, file, guest } = await linked(path, base + 50)
    await recorder.start(file, ethernet, 0)
    await guest.send('one')
    await holds(file, 1)
    await expect(recorder.start(file, ethernet, 0)).rejects.toMatchObject({ code: 'exists' })
    await guest.send('two')
    expect(textsOf(await holds(file, 2))).toEqual(['one', 'two'])
  })

  test('an existing file is replaced, and a path that cannot be written is reported and captures nothing', async () => {
    const { recorder, file, guest } = await linked(path, base + 60)
    for (const frame of ['old', 'new']) {
      await recorder.start(file, ethernet, 0)
      await guest.send(frame)
      await holds(file, 1)
      await recorder.stop()
      expect(textsOf(await readWhole(file))).toEqual([frame])
    }
    await expect(recorder.start(join(file, 'below'), ethernet, 0)).rejects.toThrow()
    expect(recorder.state).toBe(null)
    await recorder.start(file, ethernet, 0)
  })
})

test('a capture that the path refuses is none, and can be started again', async () => {
  const capture = vi.fn<(row: number, memory: SharedArrayBuffer | null) => Promise<void>>(async () => {})
  const recorder = new Recorder({ capture }, new Counters(), 0, () => {})
  const directory = await freshDirectory()
  capture.mockRejectedValueOnce(new Error('refused'))
  await expect(recorder.start(join(directory, 'a.pcap'), ethernet, 0)).rejects.toThrow('refused')
  expect(recorder.state).toBeNull()
  await recorder.start(join(directory, 'b.pcap'), ethernet, 0)
  expect(capture.mock.calls.map(([, memory]) => memory !== null)).toEqual([true, false, true])
  await recorder.close()
})
