import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Filter } from '../../../runtime/node/keeper/protocol.ts'
import { freshDirectory } from '../../support/directory.ts'
import { lan, type Peer, packetPaths, type PathName, peer, udp } from '../../support/lan.ts'
import { holds, openReader, readPcap, readWhole, textsOf } from '../../support/pcap.ts'
import { requireRoot } from '../../support/require.ts'

const ethernet = 1
const root = requireRoot()

describe.each(packetPaths)('captures on the %s packet path', (path) => {
  const base = path === 'fast' ? 43_400 : 43_600

  test('a file holds the frames of both directions with their times and lengths while it is written', async () => {
    const { recorder, file, guest, remote, lport } = await linked(path, base)
    await recorder.start(file, ethernet, 0)
    const before = Date.now()
    await guest.send('out')
    expect(await remote.next()).toBe('out')
    const { records } = await holds(file, 1)
    const after = Date.now()
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

  test('what a filter dropped is not in the file', async () => {
    const filters: Filter[] = [{ type: 'frequency_drop', every: 2 }]
    const { recorder, file, guest, counted } = await linked(path, base + 20, filters)
    await recorder.start(file, ethernet, 0)
    for (const frame of ['1', 'dropped', '3', 'dropped', '5']) await guest.send(frame)
    await counted(({ dropped, out_frames }) => expect([dropped.frequency_drop, out_frames]).toEqual([2, 3]))
    await recorder.stop()
    expect(textsOf(await readWhole(file))).toEqual(['1', '3', '5'])
  })

  test('a frame that a filter duplicated is there twice', async () => {
    const { recorder, file, guest, remote } = await linked(path, base + 30, [{ type: 'duplicate', percent: 100 }])
    await recorder.start(file, ethernet, 0)
    await guest.send('twice')
    await remote.holds(2)
    await recorder.stop()
    expect(textsOf(await readWhole(file))).toEqual(['twice', 'twice'])
  })

  test('a stop leaves a complete file with all that passed before it, and frames go on passing', async () => {
    const { recorder, file, guest, remote, counted } = await linked(path, base + 40)
    await recorder.start(file, ethernet, 0)
    const frames = Array.from({ length: 100 }, (_, index) => `frame ${index}`)
    for (const frame of frames) await guest.send(frame)
    await counted(({ out_frames }) => expect(out_frames).toBe(frames.length))
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

  test('a file that is there is replaced, and a path that cannot be written is told and captures nothing', async () => {
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

  test('without a NIO nothing is captured, and a NIO that goes ends file and streams', async () => {
    const { lan: it, recorder, file, guest } = await linked(path, base + 70)
    const [follower, live] = [await openReader(), await openReader()]
    await recorder.start(file, ethernet, 0)
    recorder.follow(follower.socket, () => {})
    await recorder.stream(live.socket, ethernet, () => {})
    await guest.send('last')
    await Promise.all([holds(file, 1), live.holds(1)])
    await it.detach('a')
    await Promise.all([follower.ended, live.ended])
    expect(textsOf(await readWhole(file))).toEqual(['last'])
    expect(follower.bytes()).toEqual(readFileSync(file))
    expect(live.bytes()).toEqual(readFileSync(file))
    expect(() => it.captured('a')).toThrow(expect.objectContaining({ code: 'not_linked' }))
    expect(() => it.captured('nobody')).toThrow(expect.objectContaining({ code: 'unknown_key' }))
    expect(recorder.state).toBe(null)
  })

  test('streams beside a file have what passes from their beginning on, and go without disturbing the others', async () => {
    const { recorder, file, guest } = await linked(path, base + 80)
    const readers = [await openReader(), await openReader(), await openReader()] as const
    const [one, two, three] = readers
    await recorder.stream(one.socket, ethernet, () => {})
    await guest.send('1')
    await one.holds(1)
    await recorder.start(file, ethernet, 0)
    await recorder.stream(two.socket, 104, () => {})
    await guest.send('2')
    await Promise.all([one.holds(2), two.holds(1), holds(file, 1)])
    one.far.destroy()
    await recorder.stop()
    await recorder.stream(three.socket, ethernet, () => {})
    await guest.send('3')
    await Promise.all([two.holds(2), three.holds(1)])
    expect(textsOf(readPcap(one.bytes()))).toEqual(['1', '2'])
    expect(readPcap(two.bytes()).linkType).toBe(104)
    expect(textsOf(readPcap(two.bytes()))).toEqual(['2', '3'])
    expect(textsOf(readPcap(three.bytes()))).toEqual(['3'])
    expect(textsOf(await readWhole(file))).toEqual(['2'])
  })

  test('a slow reader of a stream misses whole records; the link, the file and other streams do not wait for it', async () => {
    const { recorder, file, guest, remote, counted } = await linked(path, base + 90)
    const [slow, quick] = [await openReader(), await openReader()]
    await recorder.start(file, ethernet, 0)
    for (const { socket } of [slow, quick]) await recorder.stream(socket, ethernet, () => {})
    slow.far.pause()
    const count = 2000
    await sendAll(guest, remote, count, 8000)
    await counted(({ out_frames }) => expect(out_frames).toBe(count))
    await holds(file, count)
    await quick.holds(count)
    slow.far.resume()
    await vi.waitFor(() => expect(slow.socket.writableLength).toBe(0), { timeout: 5000 })
    await guest.send('at last')
    const { records } = await vi.waitFor(
      () => {
        const pcap = readPcap(slow.bytes())
        expect(textsOf(pcap).at(-1)).toBe('at last')
        return pcap
      },
      { timeout: 5000, interval: 20 },
    )
    expect(records.length).toBeLessThan(count)
    const numbers = records.slice(0, -1).map(({ frame }) => frame.readUInt32LE(0))
    expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b))
    await recorder.stop()
    const whole = await readWhole(file)
    expect(whole.records.map(({ frame }) => frame.length)).toEqual([...Array(count).fill(8000), 7])
  }, 30_000)

  test('a capture is followed from its beginning, and to its end', async () => {
    const { recorder, file, guest } = await linked(path, base + 100)
    const [early, late] = [await openReader(), await openReader()]
    expect(() => recorder.follow(early.socket, () => {})).toThrow(expect.objectContaining({ code: 'not_running' }))
    await recorder.start(file, ethernet, 0)
    recorder.follow(early.socket, () => {})
    await guest.send('one')
    await early.holds(1)
    recorder.follow(late.socket, () => {})
    await late.holds(1)
    await guest.send('two')
    await Promise.all([early.holds(2), late.holds(2)])
    await recorder.stop()
    await Promise.all([early.ended, late.ended])
    expect([early.bytes(), late.bytes()]).toEqual(Array(2).fill(readFileSync(file)))
  })

  test('followers that hang and leave do not keep the file open', async () => {
    const { recorder, file, guest, remote } = await linked(path, base + 110)
    await recorder.start(file, ethernet, 0)
    await sendAll(guest, remote, 500, 8000)
    await holds(file, 500)
    const hanging = await openReader()
    hanging.far.pause()
    recorder.follow(hanging.socket, () => {})
    await vi.waitFor(() => expect(hanging.socket.writableNeedDrain).toBe(true))
    hanging.far.destroy()
    // At different moments: while the file is opened, read, or written to them.
    for (let turns = 0; turns < 60; turns++) {
      const { socket } = await openReader()
      recorder.follow(socket, () => {})
      for (let turn = 0; turn < turns; turn++) await setImmediate()
      socket.destroy()
    }
    // The writer has it, nobody else.
    await vi.waitFor(() => expect(openDescriptors(file)).toBe(1), { timeout: 5000 })
    await recorder.stop()
    expect(openDescriptors(file)).toBe(0)
  })

  test('20,000 frames sent fast are in the file, or counted as missed', async () => {
    const { recorder, file, guest, accounted } = await linked(path, base + 120)
    await recorder.start(file, ethernet, 0)
    for (let index = 0; index < 20_000; index++) {
      guest.socket.send(numbered(index, 1200))
      // What is sent leaves at once, and a path in this thread needs its turns to take it.
      if (index % 200 === 199) await setImmediate()
    }
    const { frames, missed, passed } = await accounted()
    expect(passed).toBeGreaterThan(1000)
    expect(frames + missed).toBe(passed)
    await recorder.stop()
    const { records } = await readWhole(file)
    expect(records.length).toBe(frames)
    expect(records.filter((it) => it.length !== 1200 || it.frame.length !== 1200)).toEqual([])
  }, 30_000)

  // Only a path with a thread of its own can be faster than the file.
  test.runIf(path === 'fast')(
    'what comes faster than it can be stored is counted as missed, and the file stays whole',
    async () => {
      const { recorder, file, guest, accounted } = await linked(path, base + 160)
      await recorder.start(file, ethernet, 0)
      // Nothing is stored meanwhile, because this thread is busy.
      for (let index = 0; index < 60_000; index++) guest.socket.send(numbered(index, 1200))
      const { frames, missed, passed } = await accounted()
      expect(missed).toBeGreaterThan(0)
      expect(frames + missed).toBe(passed)
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

  test('captures and streams that begin and end while frames pass have nothing of each other', async () => {
    const { recorder, file, guest, remote } = await linked(path, base + 130)
    let isOver = false
    const traffic = (async () => {
      for (let round = 0; !isOver; round++) {
        await sendAll(guest, remote, 20, 300)
        remote.got.length = 0
      }
    })()
    for (let round = 0; round < 15; round++) {
      const reader = await openReader()
      await recorder.stream(reader.socket, ethernet, () => {})
      await reader.holds(1)
      reader.far.destroy()
      await new Promise<void>((resolve) => reader.socket.once('close', () => resolve()))
      await recorder.start(file, ethernet, 0)
      await holds(file, 1)
      await recorder.stop()
      const { records } = await readWhole(file)
      expect(records.filter((it) => it.frame.length !== 300)).toEqual([])
    }
    isOver = true
    await traffic
  }, 30_000)

  test.skipIf(root.skip)('on a full disk a capture ends with a report and a whole record, and frames go on', async () => {
    const { recorder, guest, remote, failures } = await linked(path, base + 140)
    const file = join(await smallDisk(), 'full.pcap')
    const follower = await openReader()
    await recorder.start(file, ethernet, 0)
    recorder.follow(follower.socket, () => {})
    await sendAll(guest, remote, 300, 8000)
    await vi.waitFor(() => expect(failures).toHaveLength(1), { timeout: 5000 })
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
    await vi.waitFor(() => expect(failures).toHaveLength(1), { timeout: 5000 })
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

/** A switch with one guest, its link to a peer outside, and a place for a capture. */
async function linked(path: PathName, lport: number, filters: Filter[] = []) {
  const { lan: it, guests, failures, report, counted } = await lan(path, 'a')
  const remote = await peer(lport + 1)
  await it.attach('a', udp(lport, lport + 1, { filters }))
  return {
    lan: it,
    guest: guests[0],
    remote,
    lport,
    failures,
    recorder: it.captured('a'),
    file: join(await freshDirectory(), 'a.pcap'),
    /** The counters of the capture when it has accounted for all that passed. */
    accounted: () =>
      vi.waitFor(
        async () => {
          const { counters, capture } = await report('a')
          const { frames = 0, missed = 0 } = capture ?? {}
          const passed = counters.out_frames + counters.in_frames
          expect(frames + missed).toBeGreaterThanOrEqual(passed)
          return { frames, missed, passed }
        },
        { timeout: 10_000 },
      ),
    counted: (check: Parameters<typeof counted>[1]) => counted('a', check),
  }
}

function numbered(index: number, length: number): Buffer {
  const frame = Buffer.alloc(length)
  frame.writeUInt32LE(index)
  return frame
}

/** Sends frames that begin with their number; none is lost, because only a few are under way. */
async function sendAll(from: Peer, to: Peer, count: number, length: number): Promise<void> {
  const before = to.got.length
  for (let index = 0; index < count; index++) {
    await from.send(numbered(index, length))
    if (index % 10 === 9 || index === count - 1) await to.holds(before + index + 1)
  }
}

/** A directory that holds 1 MB and not more. */
async function smallDisk(): Promise<string> {
  const directory = join(await freshDirectory(), 'disk')
  mkdirSync(directory)
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', directory])
  onTestFinished(() => void execFileSync('umount', ['-l', directory]))
  return directory
}

/** How many descriptors of this process are of the file. */
function openDescriptors(file: string): number {
  return readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`) === file
    } catch {
      return false
    }
  }).length
}
