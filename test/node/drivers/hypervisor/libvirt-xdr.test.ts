import fc from 'fast-check'
import { expect, test } from 'vitest'
import { adapterType, adapterTypes } from '../../../../runtime/node/drivers/hypervisor/libvirt/adapter-types.ts'
import { readDomain, writeDomain } from '../../../../runtime/node/drivers/hypervisor/libvirt/domain.ts'
import {
  encodeMessage,
  type Message,
  MessageReader,
  procedures,
  remoteProgram,
} from '../../../../runtime/node/drivers/hypervisor/libvirt/protocol.ts'
import { XdrReader, XdrWriter } from '../../../../runtime/node/drivers/hypervisor/libvirt/xdr.ts'

test('messages are equal to those of virsh', () => {
  const domain = { name: 'probe2', uuid: '11111111-2222-3333-4444-555555555501' }
  const payload = writeDomain(new XdrWriter(), domain).uint(0).bytes
  expect(payload.toString('hex')).toBe('0000000670726f626532000011111111222233334444555555555501ffffffff00000000')
  expect(readDomain(new XdrReader(payload))).toEqual(domain)
  const call = { program: remoteProgram, procedure: procedures.domainManagedSave, type: 0, serial: 8, isError: false }
  expect(encodeMessage({ ...call, payload }).toString('hex')).toBe(
    `00000040${'20008086'}00000001000000b6000000000000000800000000${payload.toString('hex')}`,
  )
})

test('values are decoded as they were encoded, and reads end at the end of the message', () => {
  fc.assert(
    fc.property(
      fc.uint8Array().map((bytes) => Buffer.from(bytes).toString('latin1')),
      fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }),
      fc.option(fc.string()),
      (text, number, maybe) => {
        const { bytes } = new XdrWriter()
          .string(text)
          .int(number)
          .maybeString(maybe ?? undefined)
        expect(bytes.length % 4).toBe(0)
        const reader = new XdrReader(bytes)
        expect([reader.string(), reader.int(), reader.maybe((it) => it.string())]).toEqual([
          text,
          number,
          maybe ?? undefined,
        ])
        expect(() => reader.uint()).toThrow(RangeError)
        const cut = new XdrReader(bytes.subarray(0, -1))
        expect(() => [cut.string(), cut.int(), cut.maybe((it) => it.string())]).toThrow(RangeError)
      },
    ),
  )
  expect(() => new XdrReader(Buffer.from('ffffffff', 'hex')).array((it) => it.int())).toThrow(RangeError)
})

test('messages are the same for pieces of any size', () => {
  const messageOf = (length: number, serial: number): Message => ({
    ...{ program: remoteProgram, procedure: 14, type: 1, serial, isError: serial % 2 === 1 },
    payload: Buffer.alloc(length * 4, serial),
  })
  fc.assert(
    fc.property(
      fc.array(fc.nat(300), { maxLength: 5 }),
      fc.array(fc.integer({ min: 1, max: 200 })),
      (lengths, cuts) => {
        const messages = lengths.map(messageOf)
        let rest = Buffer.concat(messages.map(encodeMessage))
        const reader = new MessageReader()
        const seen: Message[] = []
        for (const cut of [...cuts, rest.length]) {
          seen.push(...reader.push(rest.subarray(0, cut)))
          rest = rest.subarray(cut)
        }
        expect(seen).toEqual(messages)
      },
    ),
  )
})

test.for([
  ['Intel PRO/1000 MT Desktop (82540EM)', 'e1000'],
  ['Intel PRO/1000 T Server (82543GC)', 'e1000'],
  ['Intel PRO/1000 MT Server (82545EM)', 'e1000'],
  ['PCnet-PCI II (Am79C970A)', 'pcnet'],
  ['PCNet-FAST III (Am79C973)', 'pcnet'],
  ['Paravirtualized Network (virtio-net)', 'virtio'],
  ['virtio-net-pci', 'virtio'],
  ['VirtIO', 'virtio'],
  ['e1000', 'e1000'],
  ['e1000e', 'e1000e'],
  ['rtl8139', 'rtl8139'],
  ['vmxnet3', 'vmxnet3'],
  ['ne2k_pci', 'ne2k_pci'],
  ['Am7990', undefined],
  ['', undefined],
] as const)('the adapter type "%s" is %s', ([text, type]) => {
  expect(adapterType(text)).toBe(type)
  if (type !== undefined) expect(adapterTypes).toContain(type)
})
