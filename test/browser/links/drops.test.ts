import { expect, test } from 'vitest'
import { dropsBetween, wiresharkLine } from '../../../runtime/browser/links/drops.ts'

test('drops are reported by reason, the most frequent first, also those of the receiver', () => {
  const from = { packet_loss: 3, bpf: 12, suspended: 0, no_guest: 7, queue_full: 1, solar_flare: 2 }
  expect(dropsBetween(from, { packet_loss: 5, no_guest: 4, send_failed: 0 })).toEqual([
    ['the filter', 12],
    ['the other node was not running', 4],
    ['loss', 3],
    ['solar_flare', 2],
    ['the queue was full', 1],
  ])
})

test('the command for Wireshark reads the token from a variable, and does not contain it', () => {
  const link = { project_id: 'p', link_id: 'l' }
  const address = 'https://lab.example/v2/projects/p/links/l/capture/stream?format=pcapng'
  expect(wiresharkLine('https://lab.example', link, false)).toBe(`curl -sN -X POST "${address}" | wireshark -k -i -`)
  expect(wiresharkLine('https://lab.example', link, true)).toBe(
    `curl -sN -X POST -H "Authorization: Bearer $PATCHBAY_TOKEN" "${address}" | wireshark -k -i -`,
  )
})
