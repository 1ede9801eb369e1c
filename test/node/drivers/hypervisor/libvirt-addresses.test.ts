import { expect, onTestFinished, test } from 'vitest'
import { LibvirtClient } from '../../../../runtime/node/drivers/hypervisor/libvirt/client.ts'
import { readDomain } from '../../../../runtime/node/drivers/hypervisor/libvirt/domain.ts'
import { GuestAddresses, neighbours } from '../../../../runtime/node/drivers/hypervisor/libvirt/guest-addresses.ts'
import { procedures } from '../../../../runtime/node/drivers/hypervisor/libvirt/protocol.ts'
import { XdrReader, XdrWriter } from '../../../../runtime/node/drivers/hypervisor/libvirt/xdr.ts'
import { FakeLibvirt, refusal } from './fake-libvirt.ts'

const domain = { name: 'Lab VM', uuid: '6e2b5c1a-1111-4222-8333-444455556666' }
const operationUnsupported = 84

/** Where leases, and the agent of the guest, say that it is; undefined: libvirt refuses. */
async function newAddresses(lease: string[] | undefined, agent: string[] | undefined) {
  const told = { lease, agent }
  const libvirt = await FakeLibvirt.start({
    [procedures.domainInterfaceAddresses](message, it) {
      const reader = new XdrReader(message.payload)
      expect(readDomain(reader)).toEqual(domain)
      const found = [told.lease, told.agent][reader.uint()]
      if (found !== undefined) return interfaces(found)
      it.reply(message, refusal(operationUnsupported, 'no such source'), true)
      return undefined
    },
  })
  const client = new LibvirtClient({ uri: () => libvirt.uri })
  onTestFinished(() => client.close())
  return { libvirt, told, addresses: new GuestAddresses(client) }
}

/** One adapter for every address; the last one has no MAC. */
function interfaces(addresses: readonly string[]): XdrWriter {
  const writer = new XdrWriter().uint(addresses.length)
  for (const [index, address] of addresses.entries()) {
    const isLast = index === addresses.length - 1
    writer.string(`vnet${index}`).maybeString(isLast ? undefined : '52:54:00:00:00:01')
    writer.uint(1).int(0).string(address).uint(24)
  }
  return writer
}

const none: ReadonlySet<string> = new Set()

test('leases come first, then addresses of the agent, and IPv6 last; unreachable addresses are left out', async () => {
  const { addresses } = await newAddresses(
    ['fd00::7', '192.0.2.7'],
    ['127.0.0.1', '::1', '192.0.2.8', '192.0.2.7', 'fe80::1', '169.254.1.1', '0.0.0.0'],
  )
  expect(await addresses.find(domain, none)).toEqual(['192.0.2.7', '192.0.2.8', 'fd00::7'])
})

test('a source that the VM does not have is skipped', async () => {
  const { addresses, told } = await newAddresses(undefined, ['192.0.2.8'])
  expect(await addresses.find(domain, none)).toEqual(['192.0.2.8'])
  told.agent = undefined
  expect(await addresses.find({ ...domain }, none)).toEqual([])
})

test('the last known address of a guest is tried, and does not count without an answer', async () => {
  const { addresses, told } = await newAddresses(['192.0.2.7', '2001:db8::7', 'fd00::7'], [])
  expect(await addresses.find(domain, none)).toHaveLength(3)
  told.lease = []
  expect(await addresses.find(domain, none)).toEqual([])
})

test('a libvirt that does not run is a conflict', async () => {
  const { addresses, libvirt } = await newAddresses([], [])
  await addresses.find(domain, none)
  await libvirt.end()
  await expect(addresses.find(domain, none)).rejects.toMatchObject({ status: 409 })
})

test('neighbours are used when their MAC address is known', () => {
  const table = [
    'IP address       HW type     Flags       HW address            Mask     Device',
    '192.0.2.1        0x1         0x2         52:54:00:AB:00:01     *        virbr0',
    '192.0.2.2        0x1         0x0         00:00:00:00:00:00     *        virbr0',
    '192.0.2.3        0x1         0x6         52:54:00:ab:00:03     *        virbr0',
    '',
  ].join('\n')
  expect(neighbours(table)).toEqual([
    { address: '192.0.2.1', mac: '52:54:00:ab:00:01' },
    { address: '192.0.2.3', mac: '52:54:00:ab:00:03' },
  ])
  expect(neighbours('')).toEqual([])
})
