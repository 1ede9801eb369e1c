import { readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import { CaptureReader } from '../../../../src/packets/capture-reader.ts'
import { ethernet, linked, sendAll } from '../../../support/captured-link.ts'
import { packetPaths } from '../../../support/lan.ts'
import { hangMs } from '../../../support/limits.ts'
import { holds, openReader, readPcap, readWhole, textsOf } from '../../../support/pcap.ts'
import { freePorts } from '../../../support/ports.ts'

describe.each(packetPaths)('streams of captures on the %s packet path', (path) => {
  const base = freePorts(190)

  test('without a NIO nothing is captured, and the removal of a NIO ends file and streams', async () => {
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

  test('streams beside a file have the frames after their beginning, and their ends do not disturb others', async () => {
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
    const [slow, told, quick] = [await openReader(), await openReader(), await openReader()]
    await recorder.start(file, ethernet, 0)
    for (const { socket } of [slow, quick]) await recorder.stream(socket, ethernet, () => {})
    await recorder.stream(told.socket, ethernet, () => {}, true)
    slow.far.pause()
    told.far.pause()
    const count = 1000
    // On a busy host nobody is quick who is not waited for.
    await sendAll(guest, remote, count, 8000, quick.holds)
    await counted(({ out_frames }) => expect(out_frames).toBe(count))
    await holds(file, count)
    await quick.holds(count)
    slow.far.resume()
    told.far.resume()
    for (const { socket } of [slow, told])
      await vi.waitFor(() => expect(socket.writableLength).toBe(0), { timeout: hangMs })
    await guest.send('at last')
    const { records } = await vi.waitFor(
      () => {
        const pcap = readPcap(slow.bytes())
        expect(textsOf(pcap).at(-1)).toBe('at last')
        return pcap
      },
      { timeout: hangMs, interval: 20 },
    )
    expect(records.length).toBeLessThan(count)
    const numbers = records.slice(0, -1).map(({ frame }) => frame.readUInt32LE(0))
    expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b))
    // Who asked for it is told how many are missing, where they are.
    const { lost, frames } = await vi.waitFor(
      () => {
        const reader = new CaptureReader()
        const frames = reader.push(told.bytes())
        expect(Buffer.from(frames.at(-1)?.bytes ?? []).toString()).toBe('at last')
        return { lost: reader.lost, frames: frames.length }
      },
      { timeout: hangMs, interval: 20 },
    )
    expect(lost).toBeGreaterThan(0)
    expect(frames + lost).toBe(count + 1)
    await recorder.stop()
    const whole = await readWhole(file)
    expect(whole.records.map(({ frame }) => frame.length)).toEqual([...Array(count).fill(8000), 7])
  })

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

  test('followers that stall or disconnect do not keep the file open', async () => {
    const { recorder, file, guest, remote } = await linked(path, base + 110)
    await recorder.start(file, ethernet, 0)
    await sendAll(guest, remote, 500, 8000)
    await holds(file, 500)
    const hanging = await openReader()
    hanging.far.pause()
    recorder.follow(hanging.socket, () => {})
    await vi.waitFor(() => expect(hanging.socket.writableNeedDrain).toBe(true), { timeout: hangMs })
    hanging.far.destroy()
    // At different moments: while the file is opened, read, or written to them.
    for (let turns = 0; turns < 60; turns++) {
      const { socket } = await openReader()
      recorder.follow(socket, () => {})
      for (let turn = 0; turn < turns; turn++) await setImmediate()
      socket.destroy()
    }
    await recorder.stop()
    await vi.waitFor(() => expect(openDescriptors(file)).toBe(0), { timeout: hangMs })
  })

  test('a follower of a capture reads it to its end, also when its path leads to another file', async () => {
    const { recorder, file, guest } = await linked(path, base + 170)
    const [before, after, late] = [await openReader(), await openReader(), await openReader()]
    await recorder.start(file, ethernet, 0)
    recorder.follow(before.socket, () => {})
    await guest.send('one')
    await before.holds(1)
    rmSync(file)
    writeFileSync(file, 'something else, which is longer than the capture that was here before it')
    recorder.follow(after.socket, () => {})
    await after.holds(1)
    await guest.send('two')
    await Promise.all([before.holds(2), after.holds(2)])
    after.far.pause()
    await recorder.stop()
    after.far.resume()
    await Promise.all([before.ended, after.ended])
    expect(textsOf(readPcap(after.bytes()))).toEqual(['one', 'two'])
    expect(before.bytes()).toEqual(after.bytes())
    await recorder.start(file, ethernet, 0)
    recorder.follow(late.socket, () => {})
    await guest.send('three')
    expect(textsOf(await late.holds(1))).toEqual(['three'])
  })

  test('captures and streams that begin and end while frames pass do not mix', async () => {
    const { recorder, file, guest, remote } = await linked(path, base + 130)
    let isOver = false
    const traffic = (async () => {
      while (!isOver) {
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
  })
})

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
