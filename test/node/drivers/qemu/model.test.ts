import { Check } from '@sinclair/typebox/value'
import { expect, test } from 'vitest'
import {
  MachineEmulatorCreate,
  MachineEmulatorNode,
  MachineEmulatorUpdate,
  machineSettings,
  platforms,
} from '../../../../src/model/kinds/machine-emulator.ts'
import { validate } from '../../../../src/model/validation/validate.ts'

const id = '10000000-0000-4000-8000-000000000001'

const defaults = Object.fromEntries(Object.entries(machineSettings).map(([name, schema]) => [name, schema.default]))

test('every setting has the default that clients know', () => {
  const disks = (value: string, suffix: string) =>
    Object.fromEntries(['hda', 'hdb', 'hdc', 'hdd'].map((slot) => [`${slot}_disk_${suffix}`, value]))
  expect(defaults).toEqual({
    ...{ usage: '', linked_clone: true, console_type: 'telnet', ...disks('', 'image'), ...disks('ide', 'interface') },
    ...{
      cdrom_image: '',
      bios_image: '',
      firmware: 'bios',
      initrd: '',
      kernel_image: '',
      kernel_command_line: '',
      boot_priority: 'c',
    },
    ...{ ram: 256, cpus: 1, adapters: 1, adapter_type: 'e1000', custom_adapters: [], legacy_networking: false },
    ...{ on_close: 'power_off', cpu_throttling: 0, process_priority: 'low', options: '' },
  })
})

test('every default fits its own schema', () => {
  for (const [name, schema] of Object.entries(machineSettings)) {
    expect(Check(schema, schema.default), name).toBe(true)
  }
})

test('a node with nothing but defaults fits', () => {
  const sums = ['hda_disk_image', 'hdb_disk_image', 'hdc_disk_image', 'hdd_disk_image', 'cdrom_image', 'bios_image']
  const node: unknown = {
    ...defaults,
    ...Object.fromEntries([...sums, 'initrd', 'kernel_image'].map((name) => [`${name}_md5sum`, null])),
    ...{ node_id: id, project_id: id, name: 'R1', node_directory: '/d', status: 'stopped', console: 5000 },
    ...{ command_line: '', status_reason: null, qemu_path: '/usr/bin/qemu-system-x86_64', platform: 'x86_64' },
    ...{ mac_address: '0c:00:00:00:01:00', acpi_shutdown: false },
  }
  expect(validate(MachineEmulatorNode, node)).toBe(node)
})

test('a new machine needs a name and nothing else', () => {
  expect(Check(MachineEmulatorCreate, { name: 'R1' })).toBe(true)
  expect(() => validate(MachineEmulatorCreate, {})).toThrow('name: missing')
  expect(Check(MachineEmulatorUpdate, {})).toBe(true)
})

test('every input but the name of a new machine may be null', () => {
  const fields = Object.keys(MachineEmulatorUpdate.properties)
  expect(Check(MachineEmulatorUpdate, Object.fromEntries(fields.map((field) => [field, null])))).toBe(true)
  expect(Check(MachineEmulatorCreate, { ...Object.fromEntries(fields.map((it) => [it, null])), name: 'R1' })).toBe(true)
})

test('the types fit their schemas', () => {
  const create: MachineEmulatorCreate = {
    ...{ name: 'R1', node_id: 7, console: null, ram: 512, hda_disk_interface: 'virtio', platform: 'x86_64' },
    ...{ custom_adapters: [{ adapter_number: 3, adapter_type: 'virtio-net-pci', mac_address: null }], mac_address: '' },
  }
  expect(validate(MachineEmulatorCreate, create)).toBe(create)
})

test('a legacy id is for new machines only', () => {
  expect(Check(MachineEmulatorCreate, { name: 'R1', node_id: 3 })).toBe(true)
  expect(() => validate(MachineEmulatorUpdate, { node_id: 3 })).toThrow('node_id: unknown field')
})

test.for([
  [{ adapters: 276 }, 'adapters: expected an integer from 0 to 275, got 276'],
  [{ adapters: -1 }, 'adapters: expected'],
  [{ cpus: 0 }, 'cpus: expected an integer from 1 to 255'],
  [{ cpu_throttling: 801 }, 'cpu_throttling: expected an integer from 0 to 800'],
  [{ ram: '512' }, 'ram: expected an integer'],
  [{ boot_priority: 'x' }, 'boot_priority: expected "c", "d"'],
  [{ console_type: 'http' }, 'console_type: expected "telnet", "vnc"'],
  [{ hda_disk_interface: 'ide,file=/etc/shadow' }, 'hda_disk_interface: expected "ide", "sata"'],
  [{ adapter_type: 'e1000,romfile=/etc/shadow' }, 'adapter_type: expected the name of a device model'],
  [{ mac_address: '0c:00' }, 'mac_address: expected a MAC address'],
  [{ platform: 'pdp11' }, 'platform: expected "aarch64", "alpha"'],
  [{ qemu_path: '' }, 'qemu_path: expected'],
  [{ hda_disk_image: 'a\nb' }, 'hda_disk_image: expected the name or path of an image'],
  [{ custom_adapters: [{ port_name: 'x' }] }, 'custom_adapters[0]'],
  [{ hda_disk: 'x' }, 'hda_disk: unknown field'],
] as const)('%j is refused by name', ([body, message]) => {
  expect(() => validate(MachineEmulatorUpdate, body)).toThrow(message)
})

test('every platform of the interface is taken', () => {
  for (const platform of platforms) expect(Check(MachineEmulatorUpdate, { platform }), platform).toBe(true)
})
