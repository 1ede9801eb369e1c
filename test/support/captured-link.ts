import { join } from 'node:path'
import { expect, vi } from 'vitest'
import type { Filter } from '../../runtime/node/filters/index.ts'
import { freshDirectory } from './directory.ts'
import { lan, type PathName, type Peer, peer, udp } from './lan.ts'
import { hangMs } from './limits.ts'

/** The link type of the captures of tests. */
export const ethernet = 1

/** A switch with one guest, its link to a peer outside, and a place for a capture. */
export async function linked(path: PathName, lport: number, filters: Filter[] = []) {
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
          expect(frames + missed).toBe(passed)
          return { frames, missed, passed }
        },
        { timeout: hangMs },
      ),
    counted: (check: Parameters<typeof counted>[1]) => counted('a', check),
  }
}

/** A frame that begins with its number. */
export function numbered(index: number, length: number): Buffer {
  const frame = Buffer.alloc(length)
  frame.writeUInt32LE(index)
  return frame
}

/** Sends numbered frames; none is lost, because only a few are under way. */
export async function sendAll(from: Peer, to: Peer, count: number, length: number): Promise<void> {
  const before = to.got.length
  for (let index = 0; index < count; index++) {
    await from.send(numbered(index, length))
    if (index % 10 === 9 || index === count - 1) await to.holds(before + index + 1)
  }
}
