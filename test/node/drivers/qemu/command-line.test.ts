import { expect, test } from 'vitest'
import { adaptersOf, generatedMac } from '../../../../runtime/node/drivers/qemu/adapters.ts'
import { commandLine } from '../../../../runtime/node/drivers/qemu/command-line.ts'
import type { MachineDisk } from '../../../../runtime/node/drivers/qemu/drives.ts'
import { pciPlan } from '../../../../runtime/node/drivers/qemu/pci-slots.ts'
import { macAfter } from '../../../../src/model/kinds/mac-addresses.ts'
import { machine, pcFacts, type Wanted } from './machine.ts'

const line = (wanted: Wanted = {}) => commandLine(machine(wanted)).join(' ')
const older = (major: number, minor: number) => ({ ...pcFacts, version: { major, minor, micro: 0 } })
const disk = (
  slot: MachineDisk['slot'],
  as: MachineDisk['interface'],
  path = `/n/${slot}_disk.qcow2`,
): MachineDisk => ({
  ...{ slot, path, format: 'qcow2', interface: as },
})

test('a machine with nothing but defaults', () => {
  expect(commandLine(machine({ adapters: 1 }))).toEqual([
    ...['-name', 'guest=R1', '-m', '256M', '-smp', 'cpus=1', '-accel', 'kvm', '-machine', 'smm=off'],
    ...['-boot', 'order=c', '-drive', 'if=ide,index=2,media=cdrom,id=pb-cdrom'],
    ...['-uuid', '10000000-0000-4000-8000-000000000001'],
    ...['-chardev', 'stdio,id=pb-serial,signal=off', '-serial', 'chardev:pb-serial', '-display', 'none'],
    ...['-chardev', 'socket,id=pb-qmp,path=qmp.sock,server=on,wait=off', '-mon', 'chardev=pb-qmp,mode=control'],
    ...['-monitor', 'none', '-net', 'none', '-netdev'],
    'dgram,id=pb-net0,local.type=inet,local.host=127.0.0.1,local.port=10000,remote.type=inet,remote.host=127.0.0.1,remote.port=10001',
    ...['-device', 'e1000,id=pb-nic0,mac=0c:00:00:00:01:00,netdev=pb-net0', '-S'],
  ])
})

test('a machine with everything, in the order in which arguments are expected', () => {
  expect(
    commandLine(
      machine({
        settings: {
          name: 'a, b=c',
          ram: 2048,
          cpus: 4,
          boot_priority: 'dc',
          kernel_command_line: 'quiet root=/dev/sda',
        },
        ...{ firmware: { type: 'bios', path: '/i/bios.bin' }, cdrom: '/i/cd,1.iso', kernel: '/i/vmlinuz' },
        ...{ initrd: '/i/initrd', disks: [disk('hdb', 'virtio'), disk('hda', 'ide', '/n,o/a.qcow2')], isPaused: false },
        ...{ savedState: 'saved', monitor: '/r,un/q', options: '-cpu host -uuid x -nographic' },
      }),
    ),
  ).toEqual([
    ...['-name', 'guest=a,, b=c', '-m', '2048M', '-smp', 'cpus=4', '-accel', 'kvm', '-machine', 'smm=off'],
    ...['-boot', 'order=dc', '-bios', '/i/bios.bin'],
    ...['-drive', 'file=/i/cd,,1.iso,format=raw,if=ide,index=2,media=cdrom,id=pb-cdrom'],
    ...['-drive', 'file=/n,,o/a.qcow2,if=ide,index=0,media=disk,id=pb-hda,format=qcow2'],
    ...['-drive', 'file=/n/hdb_disk.qcow2,if=virtio,index=1,media=disk,id=pb-hdb,format=qcow2'],
    ...['-initrd', '/i/initrd', '-kernel', '/i/vmlinuz', '-append', 'quiet root=/dev/sda'],
    ...['-chardev', 'stdio,id=pb-serial,signal=off', '-serial', 'chardev:pb-serial'],
    ...['-chardev', 'socket,id=pb-qmp,path=/r,,un/q,server=on,wait=off', '-mon', 'chardev=pb-qmp,mode=control'],
    ...['-monitor', 'none', '-net', 'none', '-loadvm', 'saved', '-cpu', 'host', '-uuid', 'x', '-nographic'],
  ])
})

test.for([
  [{}, '-accel kvm -machine smm=off'],
  [{ accelerator: 'tcg' }, '-accel tcg'],
  [{ options: '-no-kvm' }, '-accel tcg'],
  [{ options: '-machine q35' }, '-accel kvm -machine smm=off'],
  [{ options: '-machine microvm' }, '-accel kvm'],
  [{ firmware: { type: 'uefi', code: '/c' } }, '-accel kvm'],
  [{ facts: older(2, 8) }, '-enable-kvm -machine smm=off'],
  [{ facts: older(2, 3) }, '-enable-kvm'],
  [{ facts: older(2, 8), accelerator: 'tcg' }, ''],
  [{ facts: { ...pcFacts, platform: 'i386' } }, '-accel kvm'],
  [{ options: '-accel tcg' }, ''],
  [{ options: '-machine pc,accel=tcg' }, ''],
] as const)('acceleration of %j', ([wanted, expected]) => {
  expect(line(wanted)).toContain(`-smp cpus=1 ${expected === '' ? '' : `${expected} `}-boot`)
})

test.for([
  ['ide', '-drive file=/n/hdb_disk.qcow2,if=ide,index=1,media=disk,id=pb-hdb,format=qcow2'],
  ['floppy', '-drive file=/n/hdb_disk.qcow2,if=floppy,index=1,media=disk,id=pb-hdb,format=qcow2'],
  ['none', '-drive file=/n/hdb_disk.qcow2,if=none,media=disk,id=pb-hdb,format=qcow2'],
  [
    'sata',
    '-device ahci,id=pb-ahci1 -drive file=/n/hdb_disk.qcow2,if=none,media=disk,id=pb-hdb,format=qcow2 -device ide-hd,drive=pb-hdb,bus=pb-ahci1.0,id=pb-hdb-disk',
  ],
  [
    'scsi',
    '-device lsi53c895a,id=pb-scsi -drive file=/n/hdb_disk.qcow2,if=none,media=disk,id=pb-hdb,format=qcow2 -device scsi-hd,drive=pb-hdb,bus=pb-scsi.0,scsi-id=1,id=pb-hdb-disk',
  ],
  [
    'nvme',
    '-drive file=/n/hdb_disk.qcow2,if=none,media=disk,id=pb-hdb,format=qcow2 -device nvme,drive=pb-hdb,serial=pb-hdb,id=pb-hdb-disk',
  ],
] as const)('a disk on %s', ([as, expected]) => {
  expect(line({ disks: [disk('hdb', as)] })).toContain(`id=pb-cdrom ${expected} -uuid`)
})

test('a CD-ROM drive and hdc use the same slot', () => {
  expect(line({ disks: [disk('hdc', 'ide')] })).not.toContain('pb-cdrom')
  expect(line({ disks: [disk('hdc', 'virtio')] })).toContain('pb-cdrom')
  expect(line({ options: '-cdrom /x.iso' })).not.toContain('pb-cdrom')
  expect(line({ options: '-drive file=/x.iso,index=2,media=cdrom' })).not.toContain('pb-cdrom')
  expect(() => line({ cdrom: '/x.iso', disks: [disk('hdc', 'virtio')] })).toThrow(
    'cdrom_image: the CD-ROM drive is hdc',
  )
})

test('a UEFI is flash, and only its variables are written', () => {
  expect(line({ firmware: { type: 'uefi', code: '/c', vars: '/n/uefi_vars.fd' } })).toContain(
    '-drive file=/c,if=pflash,unit=0,format=raw,readonly=on -drive file=/n/uefi_vars.fd,if=pflash,unit=1,format=raw ',
  )
})

test('consoles of every type', () => {
  const of = (console_type: 'vnc' | 'spice' | 'spice+agent' | 'none', more: Wanted = {}) =>
    line({ settings: { console_type }, console: { host: '127.0.0.1', port: 41_000 }, ...more })
  expect(of('vnc')).toContain(' -vnc 127.0.0.1:35100 -chardev')
  expect(of('vnc', { console: { host: '::1', port: 5900 } })).toContain(' -vnc [::1]:0 ')
  expect(of('spice')).toContain(' -spice addr=127.0.0.1,port=41000,disable-ticketing=on -vga qxl -chardev socket')
  expect(of('spice', { options: '-vga std' })).not.toContain('-vga qxl')
  expect(of('spice+agent')).toContain('virtserialport,bus=pb-agent-bus.0,chardev=pb-agent,name=com.redhat.spice.0')
  expect(of('none')).toContain(' -display none ')
  expect(of('none')).not.toContain('pb-serial')
  expect(() => of('vnc', { console: { host: '127.0.0.1', port: 5000 } })).toThrow('a VNC console has a port from 5900')
  expect(() => of('spice', { facts: { ...pcFacts, hasSpice: false } })).toThrow('this emulator has no SPICE')
})

test('adapters use the sockets that the keeper hands over, one after the other', () => {
  const all = line({ adapters: 2, firstSocket: 4 })
  for (const [adapter, descriptor] of [
    [0, 4],
    [1, 5],
  ])
    expect(all).toContain(`-netdev dgram,id=pb-net${adapter},local.type=fd,local.str=${descriptor} `)
})

test('an emulator before 7.2 gets its network options in the older form', () => {
  expect(line({ adapters: 1, facts: { ...pcFacts, netdevs: new Set(['socket']) } })).toContain(
    '-netdev socket,id=pb-net0,udp=127.0.0.1:10001,localaddr=127.0.0.1:10000 ',
  )
})

test('a device that the emulator lacks is reported', () => {
  expect(() => line({ adapters: 1, model: 'e1001' })).toThrow(
    'adapter_type: this emulator has no network adapter e1001; it has e1000, ne2k_isa, virtio-net-pci',
  )
  expect(() => line({ adapters: 1, model: 'nvme' })).toThrow('has no network adapter nvme')
  expect(() => line({ settings: { kernel_command_line: 'x' } })).toThrow('needs kernel_image')
  expect(() => line({ adapters: 2, wires: new Map() })).toThrow('Adapter 0 has no port')
  expect(() => line({ monitor: `/${'x'.repeat(107)}` })).toThrow('longer than 107 bytes')
  expect(() => line({ adapters: 275, facts: older(2, 3) })).toThrow('more than one PCI bridge, which requires QEMU 2.4')
  expect(line({ adapters: 29, facts: older(2, 3) })).toContain('pb-bridge1')
})

test('28 adapters need no bridge, and those beyond have fixed places behind one', () => {
  expect(line({ adapters: 28 })).not.toContain('bridge')
  const all = commandLine(machine({ adapters: 29 }))
  expect(all).toContain('i82801b11-bridge,id=pb-dmi1')
  expect(all).toContain('pci-bridge,id=pb-bridge1,bus=pb-dmi1,chassis_nr=0x1,addr=0x1,shpc=off')
  expect(all).toContain('e1000,id=pb-nic26,mac=0c:00:00:00:01:1a,netdev=pb-net26')
  expect(all).toContain('e1000,id=pb-nic27,mac=0c:00:00:00:01:1b,netdev=pb-net27,bus=pb-bridge1,addr=0x0')
  expect(all).toContain('e1000,id=pb-nic28,mac=0c:00:00:00:01:1c,netdev=pb-net28,bus=pb-bridge1,addr=0x1')
})

test('any number of adapters beside other devices has a PCI address for each, and none twice', () => {
  for (let others = 0; others <= 8; others++) {
    for (let count = 0; count <= 275; count++) {
      const { bridges, addressOf: place } = pciPlan(pcFacts, count, others)
      const behind = Array.from({ length: count }, (_, n) => place(n)).filter((it) => it !== '')
      const onRoot = count - behind.length
      expect(new Set(behind).size).toBe(behind.length)
      // Three are built in on both kinds of PC.
      expect(3 + others + bridges.length / 4 + onRoot).toBeLessThanOrEqual(31)
      const used = behind.map((it) => Number(/pb-bridge(\d+),/.exec(it)?.[1]))
      expect(Math.max(0, ...used)).toBe(bridges.length / 4)
    }
  }
})

test('adapters that are not on PCI take no PCI address', () => {
  expect(line({ adapters: 40, model: 'ne2k_isa' })).not.toContain('bridge')
})

test('MAC addresses follow the first one, except those that are set', () => {
  expect(generatedMac('10000000-0000-4000-8000-00000000ABCD', '20000000-0000-4000-8000-000000001234')).toBe(
    '0c:ab:cd:12:34:00',
  )
  expect(macAfter('0c:00:00:00:01:00', 274)).toBe('0c:00:00:00:02:12')
  expect(macAfter('ff:ff:ff:ff:ff:ff', 1)).toBe('00:00:00:00:00:00')
  const settings = { adapters: 3, adapter_type: 'e1000', mac_address: '0C:00:00:00:01:FF' }
  const custom_adapters = [
    { adapter_number: 1, mac_address: '02:00:00:00:00:0A' },
    { adapter_number: 2, adapter_type: 'virtio-net-pci', mac_address: null },
    { adapter_number: 9, adapter_type: 'none' },
  ]
  expect(adaptersOf({ ...settings, custom_adapters })).toEqual([
    { model: 'e1000', mac: '0c:00:00:00:01:ff' },
    { model: 'e1000', mac: '02:00:00:00:00:0a' },
    { model: 'virtio-net-pci', mac: '0c:00:00:00:02:01' },
  ])
})
