import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { LabLink, LabNode } from '../../../src/client/patchbay.ts'
import { counted } from '../parts/counted.ts'
import { send } from '../state/client.ts'
import { type Drop, type DropCounts, dropsBetween, portAddress } from './drops.ts'
import { rateText } from './impairment.ts'
import { Sparkline } from './sparkline.tsx'

interface TrafficProps {
  readonly link: LabLink
  readonly ends: readonly [LabNode | undefined, LabNode | undefined]
  readonly samples: readonly { readonly ab: number; readonly ba: number }[]
}

/** The traffic of a link in both directions, with the reasons of its drops. */
export function Traffic({ link, ends: [a, b], samples }: TrafficProps) {
  const [first, second] = link.nodes
  const drops = useSignal<readonly [DropCounts, DropCounts]>([{}, {}])
  const [ab, ba] = [link.traffic_ab?.dropped ?? 0, link.traffic_ba?.dropped ?? 0]
  // Events have the sums; the reasons are read when these change.
  useEffect(() => {
    if (ab + ba === 0 || a === undefined || b === undefined || first === undefined || second === undefined) return
    const over = new AbortController()
    void Promise.all([
      dropsAt(portAddress(link, a, first), over.signal),
      dropsAt(portAddress(link, b, second), over.signal),
    ]).then((read) => {
      if (!over.signal.aborted) drops.value = read
    })
    return () => over.abort()
  }, [link.link_id, ab, ba])
  const [atA, atB] = drops.value
  const [nameA, nameB] = [a?.name ?? '?', b?.name ?? '?']
  return (
    <section>
      <h3>Traffic{link.path === 'kernel' && ' (by the kernel)'}</h3>
      <Direction
        {...{ from: nameA, to: nameB, traffic: link.traffic_ab }}
        samples={samples.map((it) => it.ab)}
        drops={dropsBetween(atA, atB)}
      />
      <Direction
        {...{ from: nameB, to: nameA, traffic: link.traffic_ba }}
        samples={samples.map((it) => it.ba)}
        drops={dropsBetween(atB, atA)}
      />
    </section>
  )
}

/** The drops at a port. Without an answer there are none: the sum is shown all the same. */
async function dropsAt(address: string, signal: AbortSignal): Promise<DropCounts> {
  try {
    const response = await send(address, { signal })
    const { counters } = (await response.json()) as { counters?: { dropped?: DropCounts } }
    return counters?.dropped ?? {}
  } catch {
    return {}
  }
}

interface DirectionProps {
  readonly from: string
  readonly to: string
  readonly traffic: LabLink['traffic_ab']
  readonly samples: readonly number[]
  readonly drops: readonly Drop[]
}

const Direction = ({ from, to, traffic, samples, drops }: DirectionProps) => (
  <div class="traffic">
    <span class="way">
      <bdi>{from}</bdi>{' '}
      <span>
        → <bdi>{to}</bdi>
      </span>
    </span>
    <Sparkline values={samples} />
    <span class="rate">
      {traffic === null ? 'no reading' : `${Math.round(traffic.frames_per_s)} frames/s`}
      <small>{traffic === null ? '' : rateText(traffic.bits_per_s)}</small>
    </span>
    {traffic !== null && (
      <span class="muted totals">
        {counted(traffic.frames, 'frame')}, {traffic.dropped.toLocaleString('en')} dropped
      </span>
    )}
    {traffic !== null && traffic.dropped > 0 && drops.length > 0 && (
      <ul class="muted totals" aria-label={`Dropped from ${from} to ${to}`}>
        {drops.map(([reason, frames]) => (
          <li key={reason}>
            {frames.toLocaleString('en')}: {reason}
          </li>
        ))}
      </ul>
    )}
  </div>
)
