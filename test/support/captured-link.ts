import { join } from 'node:path'
import { expect, vi } from 'vitest'
import type { Filter } from '../../runtime/node/dataplane/filters/index.ts'
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
    /** The counters of the capture when it has accounted for all that the guest sent. */
    accounted: async () => {
      await allPassed(guests[0], remote)
      return vi.waitFor(
        async () => {
          const { counters, capture } = await report('a')
          const { frames = 0, missed = 0 } = capture ?? {}
          const passed = counters.out_frames + counters.in_frames
          expect(frames + missed).toBe(passed)
          return { frames, missed, passed }
        },
        { timeout: hangMs },
      )
    },
    counted: (check: Parameters<typeof counted>[1]) => counted('a', check),
  }
}

/**
 * Resolves when no frame of the guest waits to be taken by the path: the counters may agree while some do. They pass in order, so the
 * last one that came says it of all before; where it is lost in a full queue, another is sent.
 */
async function allPassed(guest: Peer, remote: Peer): Promise<void> {
  let number = 1_000_000
  const came = () => remote.got.at(-1)?.readUInt32LE(0) === number
  while (!came()) {
    number++
    await guest.send(numbered(number, 1200))
    await vi.waitUntil(came, { timeout: 500 }).catch(() => {})
  }
}

/** A frame that begins with its number. */
export function numbered(index: number, length: number): Buffer {
  const frame = Buffer.alloc(length)
  frame.writeUInt32LE(index)
  return frame
}

/** Sends numbered frames; none is lost, because only a few are under way. `keptUp` resolves when whoever else shall miss none has them. */
export async function sendAll(
  from: Peer,
  to: Peer,
  count: number,
  length: number,
  keptUp?: (sent: number) => Promise<unknown>,
): Promise<void> {
  const before = to.got.length
  for (let index = 0; index < count; index++) {
    await from.send(numbered(index, length))
    if (index % 10 === 9 || index === count - 1) await to.holds(before + index + 1)
    if (index % 100 === 99) await keptUp?.(index + 1)
  }
}
