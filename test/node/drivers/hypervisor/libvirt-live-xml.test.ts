import { expect, test } from 'vitest'
import { interfacesOf } from '../../../../runtime/node/drivers/hypervisor/libvirt/definition.ts'
import { macOfInterface, recabled } from '../../../../runtime/node/drivers/hypervisor/libvirt/interfaces.ts'
import { liveXml, resumedXml } from '../../../../runtime/node/drivers/hypervisor/libvirt/live-xml.ts'
import {
  child,
  children,
  type Element,
  parseXml,
  removeChildren,
  xmlText,
} from '../../../../runtime/node/drivers/hypervisor/libvirt/xml.ts'
import { ideDisk, pcDefinition, workstation } from './libvirt-definitions.ts'
import { type PlanWanted, planAt } from './libvirt-lab.ts'

/** Nothing listens on these ports: only the description of a VM has them. */
const planned = (wanted: PlanWanted = {}) => planAt({ console: 47_400, udp: 47_460 }, wanted)

const uuid = '6e2b5c1a-1111-4222-8333-444455556666'
const pc = (devices = '') => pcDefinition({ name: 'pc', uuid, devices: ideDisk('/images/a.img') + devices })
const work = workstation({ name: 'work', uuid, directory: '/images' })
const used = "<interface type='bridge'><source bridge='br0'/><target dev='tap7'/><model type='virtio'/></interface>"
const unattached = "<interface type='null'><mac address='52:54:00:00:00:01'/><model type='e1000'/></interface>"

const devicesIn = (xml: string, name: string) => children(child(parseXml(xml), 'devices') as Element, name)
const adaptersIn = (xml: string) => devicesIn(xml, 'interface').map(flat)
/** Without what only makes it easier to read. */
const flat = (element: Element) => xmlText(element).replace(/>\s+</g, '><')
/** All but the parts that a plan has a say in. */
function rest(xml: string): string {
  const domain = parseXml(xml)
  for (const name of ['memory', 'currentMemory']) removeChildren(domain, name)
  const devices = child(domain, 'devices') as Element
  for (const name of ['interface', 'serial', 'console', 'graphics']) removeChildren(devices, name)
  return flat(domain)
}

test('settings that are not in the plan stay unchanged', () => {
  const live = liveXml(work, uuid, planned({ ram: 128, adapters: 4, useAnyAdapter: true }))
  expect(rest(live)).toBe(rest(work))
  expect(rest(live)).toContain('<qemu:arg value="guest-name=on"/>')
  expect(rest(live)).toContain('<title>A &amp; B &lt;"workstation"&gt;</title>')
})

test('adapters are tunnels to the switch, with addresses that are always the same', () => {
  const [first, second] = adaptersIn(liveXml(pc(), uuid, planned({ adapters: 2 })))
  expect(first).toBe(
    `<interface type="udp"><source address="127.0.0.1" port="47461"><local address="127.0.0.1" port="47460"/></source><mac address="${macOfInterface(uuid, 0)}"/><model type="e1000"/><link state="up"/></interface>`,
  )
  expect(second).toContain(macOfInterface(uuid, 1))
  expect(macOfInterface(uuid, 0)).toMatch(/^52(:[0-9a-f]{2}){5}$/)
  expect(
    new Set([macOfInterface(uuid, 0), macOfInterface(uuid, 1), macOfInterface(uuid.replace('6', '7'), 0)]).size,
  ).toBe(3)
})

test('an adapter that the VM uses stays unchanged without use_any_adapter', () => {
  const plan = planned({ adapters: 2, adapterType: 'rtl8139' })
  const [own, added] = adaptersIn(liveXml(pc(used), uuid, plan))
  expect(own).toBe(used.replaceAll("'", '"'))
  expect(added).toContain('port="47463"')
  const custom = { ...plan, adapters: plan.adapters.map((it) => (it.index === 1 ? { ...it, type: 'pcnet' } : it)) }
  expect(adaptersIn(liveXml(pc(used), uuid, custom))[1]).toContain('<model type="pcnet"/>')
  const [taken] = adaptersIn(liveXml(pc(used), uuid, { ...plan, useAnyAdapter: true }))
  expect(taken).toMatch(/^<interface type="udp">.*port="47461".*<model type="rtl8139"\/>/)
  expect(taken).not.toMatch(/bridge|tap7/)
})

test('an unattached adapter is used, with its MAC address and its PCI address', () => {
  const [own, ...others] = adaptersIn(liveXml(pc(unattached), uuid, planned({ adapters: 1 })))
  expect(own).toMatch(/^<interface type="udp">.*52:54:00:00:00:01/)
  expect(others).toEqual([])
})

test('a used adapter keeps its PCI address only with its model, and nothing of its backend', () => {
  const place = "<address type='pci' domain='0x0000' bus='0x01' slot='0x00' function='0x0'/>"
  const own = work.replace(
    "<driver queues='2'/>",
    `<driver name='vhost' queues='2' packed='on'/><boot order='1'/>${place}`,
  )
  const plan = planned({ adapters: 1, useAnyAdapter: true })
  const same = adaptersIn(liveXml(own, uuid, { ...plan, adapterType: 'virtio' }))[0]
  expect(same).toContain('<address type="pci"')
  expect(same).toContain('<driver packed="on"/>')
  expect(same).not.toMatch(/bandwidth|network/)
  const other = adaptersIn(liveXml(own, uuid, plan))[0]
  expect(other).not.toMatch(/type="pci"|packed/)
  expect(other).toContain('<boot order="1"/>')
  expect(other).toContain('52:54:00:12:34:56')
})

test('the memory is that of the plan', () => {
  expect(liveXml(pc(), uuid, planned())).toContain('<memory unit="MiB">32</memory>')
  const live = liveXml(work, uuid, planned({ ram: 100 }))
  expect(live).toContain('<memory unit="KiB">102400</memory>')
  expect(live).toContain('<currentMemory unit="KiB">102400</currentMemory>')
  const cell = "<cell id='0' cpus='0' memory='65536' unit='KiB'/>"
  const numa = (cells: string) => work.replace('<clock', `<cpu mode='host-model'><numa>${cells}</numa></cpu><clock`)
  expect(liveXml(numa(cell), uuid, planned({ ram: 100 }))).toContain('memory="102400"')
  expect(() => liveXml(numa(cell + cell), uuid, planned({ ram: 100 }))).toThrow('2 NUMA cells')
})

test('the first serial port is at the TCP port, and its console with it', () => {
  const log =
    "<serial type='file'><source path='/tmp/x'/><target type='isa-serial' port='0'/><alias name='ua-tty'/></serial>"
  const more = `${log}<serial type='pty'><target port='1'/></serial><console type='file'><source path='/tmp/x'/></console>`
  const live = liveXml(pc().replace("<serial type='pty'/>", more), uuid, planned())
  expect(devicesIn(live, 'serial').map(flat)).toEqual([
    '<serial type="tcp"><target type="isa-serial" port="0"/><alias name="ua-tty"/><source mode="bind" host="127.0.0.1" service="47400"/><protocol type="raw"/></serial>',
    '<serial type="pty"><target port="1"/></serial>',
  ])
  expect(devicesIn(live, 'console')).toEqual([])
  const bare = liveXml(
    pc().replace("<serial type='pty'/>", "<console type='pty'><target type='virtio'/></console>"),
    uuid,
    planned(),
  )
  expect(devicesIn(bare, 'serial')).toHaveLength(1)
  expect(devicesIn(bare, 'console')).toHaveLength(1)
})

test('the screen has the port of the plan, and other types of screen stay', () => {
  const own = work.replace(
    '<sound',
    "<graphics type='vnc' port='5907' listen='0.0.0.0' passwd='secret' keymap='de'/><sound",
  )
  const live = liveXml(own, uuid, planned({ screen: { host: '127.0.0.1', port: 47_540 } }))
  expect(devicesIn(live, 'graphics').map(flat)).toEqual([
    expect.stringContaining('type="spice"'),
    '<graphics type="vnc" passwd="secret" keymap="de" port="47540" autoport="no"><listen type="address" address="127.0.0.1"/></graphics>',
  ])
  const nowhere = devicesIn(liveXml(own, uuid, planned()), 'graphics')
  expect(nowhere.map((it) => it.getAttribute('type'))).toEqual(['spice'])
})

test('a saved state continues with other ports, without a change for the guest', () => {
  const saved = liveXml(pc(used), uuid, planned({ adapters: 3 }))
  const resumed = resumedXml(saved, uuid, planned({ adapters: 3, at: 10 }))
  expect(rest(resumed)).toBe(rest(saved))
  const ports = adaptersIn(resumed).map((it) => /local address="127.0.0.1" port="(\d+)"/.exec(it)?.[1])
  expect(ports).toEqual([undefined, '47482', '47484'])
  expect(adaptersIn(resumed)[0]).toBe(used.replaceAll("'", '"'))
  const moved = resumedXml(saved.replaceAll('"e1000"', '"rtl8139"'), uuid, planned({ adapters: 3 }))
  expect(adaptersIn(moved)[1]).toContain('rtl8139')
})

test.for([2, 4])('a saved state with three adapters does not continue with %i', (adapters) => {
  const saved = liveXml(pc(), uuid, planned({ adapters: 3 }))
  expect(() => resumedXml(saved, uuid, planned({ adapters }))).toThrow('was saved with 3 adapters')
})

test('the carrier is set at the adapter that leads to the switch', () => {
  const { adapters } = planned({ adapters: 2 })
  const live = parseXml(liveXml(pc(used), uuid, planned({ adapters: 2 })))
  const [first, second] = adapters.map((it) => recabled(live, { ...it, carrier: false }))
  expect(first).toBeUndefined()
  expect(second && flat(second)).toContain('<link state="down"/>')
  expect(interfacesOf(live)).toHaveLength(2)
})

test('VMs of other emulators than QEMU are refused', () => {
  expect(() => liveXml(pc().replace("'qemu'", "'lxc'"), uuid, planned())).toThrow('"pc" is a lxc VM, not a QEMU VM')
  expect(() => liveXml('<domain', uuid, planned())).toThrow('is not XML')
})
