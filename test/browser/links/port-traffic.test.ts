import { expect, test } from 'vitest'
import { portTraffic } from '../../../runtime/browser/links/port-traffic.ts'
import type { LabLink } from '../../../src/client/patchbay.ts'

const traffic = (frames: number, bytes: number, dropped = 0) => ({
  ...{ frames, bytes, dropped, frames_per_s: 0, bits_per_s: 0 },
})
const nodes = ['A', 'B'].map((node_id) => ({ node_id, adapter_number: 0, port_number: 0 }))
const link = (traffic_ab: LabLink['traffic_ab'], traffic_ba: LabLink['traffic_ba']) =>
  ({ nodes, traffic_ab, traffic_ba }) as unknown as LabLink

test('a port counts frames in and out from the side of its node, and drops if any', () => {
  const busy = link(traffic(1, 70), traffic(2000, 1_500_000, 3))
  expect(portTraffic(busy, 'A')).toBe('in 2,000 frames, 1.50 MB · out 1 frame, 70 bytes · 3 dropped')
  expect(portTraffic(busy, 'B')).toBe('in 1 frame, 70 bytes · out 2,000 frames, 1.50 MB · 3 dropped')
  expect(portTraffic(link(traffic(0, 0), traffic(0, 0)), 'A')).toBe('in 0 frames, 0 bytes · out 0 frames, 0 bytes')
  expect(portTraffic(link(null, null), 'A')).toBe('')
})
