import { expect, test } from 'vitest'
import { bytesOf } from '../../../../runtime/node/drivers/nat/addresses.ts'
import { DhcpServer } from '../../../../runtime/node/drivers/nat/dhcp.ts'
import type { KnownGuest } from '../../../../runtime/node/drivers/nat/guests.ts'
import { subnetOf, textOf4 } from '../../../../src/model/kinds/nat-subnet.ts'

const [discover, offer, request, decline, ack, nak, release] = [1, 2, 3, 4, 5, 6, 7]
const dayMs = 86_400_000

function server(text = '10.0.0.0/28', known: Readonly<Record<string, number>> = {}, reserved: readonly number[] = []) {
  let stored: Readonly<Record<string, string>> = {}
  const subnet = subnetOf(text) ?? expect.unreachable()
  const store = (leases: typeof stored) => {
    stored = leases
  }
  const it = new DhcpServer(subnet, known, store, { isReserved: (address) => reserved.includes(address) })
  /** What the guest with this number is answered: the type, its address, and where the reply goes. */
  const ask = (
    guest: number,
    type: number,
    { wanted = '', current = '', flags = 0, to = '' } = {},
    now = 0,
    at?: KnownGuest,
  ) => {
    const message = new Uint8Array(300)
    message.set([1, 1, 6, 0, 1, 2, 3, 4])
    message[10] = flags
    if (current !== '') message.set(bytesOf(current), 12)
    message.set([2, 0, 0, 0, 0, guest], 28)
    message.set([0x63, 0x82, 0x53, 0x63, 53, 1, type], 236)
    let end = 243
    for (const [code, address] of [[50, wanted] as const, [54, to] as const]) {
      if (address === '') continue
      message.set([code, 4, ...bytesOf(address)], end)
      end += 6
    }
    message[end] = 255
    const reply = it.answer(message, at, now)
    if (reply === undefined) return undefined
    return [reply.payload[242], reply.payload.subarray(16, 20).join('.'), textOf4(reply.to)]
  }
  /** Takes an address as guests do. */
  const take = (guest: number, now = 0) => {
    const offered = ask(guest, discover, {}, now)
    return offered === undefined ? undefined : ask(guest, request, { wanted: String(offered[1]), to: '10.0.0.1' }, now)
  }
  return { it, ask, take, stored: () => stored }
}

test('addresses are given from the lowest on, and each guest keeps its own', () => {
  const { ask, take, stored } = server()
  expect(ask(1, discover)).toEqual([offer, '10.0.0.3', '10.0.0.3'])
  expect(take(1)).toEqual([ack, '10.0.0.3', '10.0.0.3'])
  expect(take(2)).toEqual([ack, '10.0.0.4', '10.0.0.4'])
  expect(take(1)).toEqual([ack, '10.0.0.3', '10.0.0.3'])
  expect(stored()).toEqual({ '02:00:00:00:00:01': '10.0.0.3', '02:00:00:00:00:02': '10.0.0.4' })
})

test('a guest renews its lease, gets the requested address, or is refused the address of another', () => {
  const { ask, take } = server()
  take(1)
  expect(ask(1, request, { current: '10.0.0.3' })).toEqual([ack, '10.0.0.3', '10.0.0.3'])
  expect(ask(2, request, { wanted: '10.0.0.3' })).toEqual([nak, '0.0.0.0', '255.255.255.255'])
  expect(ask(2, request, { wanted: '10.9.9.9' })).toEqual([nak, '0.0.0.0', '255.255.255.255'])
  expect(ask(2, discover, { wanted: '10.0.0.9' })).toEqual([offer, '10.0.0.9', '10.0.0.9'])
  expect(ask(3, request, { wanted: '10.0.0.5', to: '10.0.0.2' })).toBe(undefined)
  expect(ask(3, discover, { flags: 0x80 })).toEqual([offer, '10.0.0.4', '255.255.255.255'])
})

test('addresses are free again when leases end or are released, and blocked when another host uses them', () => {
  const { ask, take } = server()
  for (let guest = 1; guest <= 12; guest++) expect(take(guest)?.[1]).toBe(`10.0.0.${guest + 2}`)
  expect(take(13)).toBe(undefined)
  ask(5, release, { current: '10.0.0.7' })
  expect(take(13, 1)?.[1]).toBe('10.0.0.7')
  expect(take(14, dayMs + 1)?.[1]).toBe('10.0.0.3')
  ask(14, decline, { wanted: '10.0.0.3' }, dayMs + 1)
  expect(take(14, dayMs + 2)?.[1]).toBe('10.0.0.4')
})

test('the leases of an earlier run count', () => {
  const { take } = server('10.0.0.0/28', { '02:00:00:00:00:07': 0x0a000003 })
  expect([take(1)?.[1], take(7)?.[1]]).toEqual(['10.0.0.4', '10.0.0.3'])
})

test('a guest that is known by its port gets its address whatever its MAC address, and no other guest gets it', () => {
  const r1 = { name: 'R1', address: 0x0a000003 }
  const { ask, take } = server('10.0.0.0/28', { '02:00:00:00:00:02': r1.address }, [r1.address])
  expect(ask(7, discover, { wanted: '10.0.0.9' }, 0, r1)).toEqual([offer, '10.0.0.3', '10.0.0.3'])
  expect(ask(7, request, { wanted: '10.0.0.3', to: '10.0.0.1' }, 0, r1)).toEqual([ack, '10.0.0.3', '10.0.0.3'])
  expect(ask(8, request, { wanted: '10.0.0.3', to: '10.0.0.1' }, 0, r1)).toEqual([ack, '10.0.0.3', '10.0.0.3'])
  expect(ask(8, request, { wanted: '10.0.0.4' }, 0, r1)).toEqual([nak, '0.0.0.0', '255.255.255.255'])
  expect(take(2)?.[1]).toBe('10.0.0.4')
  expect(ask(3, discover, { wanted: '10.0.0.3' })?.[1]).toBe('10.0.0.5')
})

test('frames that are not DHCP requests are not answered', () => {
  const { it } = server()
  for (const message of [new Uint8Array(0), new Uint8Array(240), new Uint8Array(600).fill(255)]) {
    expect(it.answer(message)).toBe(undefined)
  }
  const cut = new Uint8Array(244)
  cut.set([1, 1, 6], 0)
  cut.set([0x63, 0x82, 0x53, 0x63, 53, 200, 1], 236)
  expect(it.answer(cut)).toBe(undefined)
})
