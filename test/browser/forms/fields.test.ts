import { Type } from '@sinclair/typebox'
import { expect, test } from 'vitest'
import {
  type FormField,
  fieldsOf,
  nextRow,
  type Schema,
  textOf,
  valueIn,
  withCell,
} from '../../../runtime/browser/forms/fields.ts'
import { differenceFrom } from '../../../runtime/browser/forms/node-type-value.ts'
import { kinds } from '../../../src/model/kinds/index.ts'
import type { KindDescriptor } from '../../../src/model/kinds/kind.ts'
import { kindOf } from '../../../src/model/kinds/node.ts'
import { maybe, oneOf } from '../../../src/model/schema/fields.ts'

const fieldOf = (schema: object) => {
  const [field] = fieldsOf({ properties: { member: JSON.parse(JSON.stringify(schema)) as Schema } })
  if (field === undefined) throw new Error('no field')
  return field
}

test('each type has a field of its own', () => {
  expect(fieldOf(maybe(Type.String({ maxLength: 100 })))).toMatchObject({ kind: 'text', maxLength: 100 })
  expect(fieldOf(maybe(Type.String({ maxLength: 65536 })))).toMatchObject({ kind: 'lines' })
  expect(fieldOf(maybe(Type.Integer({ minimum: 1, maximum: 9 })))).toMatchObject({ kind: 'number', maximum: 9 })
  expect(fieldOf(maybe(Type.Boolean()))).toMatchObject({ kind: 'flag', title: 'Member' })
  expect(fieldOf(maybe(oneOf(['a', 'b'])))).toMatchObject({ kind: 'choice', options: ['a', 'b'] })
  expect(fieldOf({ type: 'string', enum: ['a', 'b'] })).toMatchObject({ kind: 'choice', options: ['a', 'b'] })
  expect(fieldOf(maybe(Type.Array(Type.String())))).toMatchObject({ kind: 'list' })
  expect(fieldOf(maybe(Type.Array(Type.Integer())))).toMatchObject({ kind: 'json' })
})

test('only lists of a machine are edited as JSON, and its paths have one line', () => {
  const fields = fieldsOf(JSON.parse(JSON.stringify(kindOf('machine-emulator').update)) as Schema)
  expect(fields.filter(({ kind }) => kind === 'json')).toEqual([])
  const [mac, path] = ['mac_address', 'qemu_path'].map((name) => fields.find((it) => it.name === name))
  expect([mac, path]).toMatchObject([
    { kind: 'text', title: 'MAC address' },
    { kind: 'text', title: 'QEMU path' },
  ])
  if (mac !== undefined) expect(valueIn(mac, '0c:12:34:56:78:00')).toBe('0c:12:34:56:78:00')
})

test('settings have titles of words, and abbreviations as they are written', () => {
  const titles = kinds.flatMap(({ update }) => fieldsOf(JSON.parse(JSON.stringify(update)) as Schema))
  const titleOf = (name: string) => titles.find((it) => it.name === name)?.title
  const names = ['hda_disk_image', 'hdd_disk_interface', 'cdrom_image', 'bios_image', 'cpus', 'ram', 'mac_addr', 'npe']
  expect(names.map(titleOf)).toEqual([
    ...['HDA disk image', 'HDD disk interface', 'CD-ROM image', 'BIOS image', 'CPUs', 'RAM', 'MAC address', 'NPE'],
  ])
  expect(['slot0', 'wic2', 'disk1', 'iomem', 'idlepc', 'l1_keepalives', 'vmname', 'linked_clone'].map(titleOf)).toEqual(
    [...['Slot 0', 'WIC 2', 'Disk 1', 'I/O memory', 'Idle-PC', 'L1 keepalives', 'VM name', 'Linked clone']],
  )
  const shouldBeCapitals = /\b(Acpi|Bios|Cdrom|Hd[a-d]|Id|Ip|Iou|Mac|Npe|Nvram|Qemu|Ram|Vlan)\b/i
  const wrong = titles.filter(({ title }) => title.match(shouldBeCapitals)?.some((it) => it !== it.toUpperCase()))
  expect(wrong.map(({ title }) => title)).toEqual([])
})

test('the settings that name images say so, in all kinds', () => {
  const named = kinds.flatMap(({ name, update }) =>
    fieldsOf(JSON.parse(JSON.stringify(update)) as Schema).flatMap((it) =>
      it.isImage === true ? `${name}: ${it.name}` : [],
    ),
  )
  expect(named).toEqual(
    expect.arrayContaining([
      'machine-emulator: hdb_disk_image',
      'machine-emulator: cdrom_image',
      'dynamips: image',
      'iou: path',
    ]),
  )
  for (const kind of kinds as readonly KindDescriptor[])
    for (const [title, { titles, rows }] of Object.entries(kind.formRows ?? {})) {
      expect(kind.formParts?.[title]).toEqual(expect.arrayContaining(rows.flat()))
      expect(rows.every((row) => row.length === titles.length)).toBe(true)
    }
})

test('a value that is not that of the node type says what the type has', () => {
  const [ram, disk, clone, mac] = ['ram', 'hda_disk_image', 'linked_clone', 'mac_address'].map((name) => {
    const { update } = kindOf('machine-emulator')
    const field = fieldsOf(JSON.parse(JSON.stringify(update)) as Schema).find((it) => it.name === name)
    if (field === undefined) throw new Error(name)
    return field
  }) as [FormField, FormField, FormField, FormField]
  const type = { name: 'IOSv', settings: { ram: 512 } }
  expect(differenceFrom(type, ram, 512)).toBeUndefined()
  // What is being typed is a text.
  expect(differenceFrom(type, ram, '512')).toBeUndefined()
  expect(differenceFrom(type, ram, 1024)).toBe('IOSv has 512')
  expect(differenceFrom(type, disk, 'a.qcow2')).toBe('IOSv has none')
  expect(differenceFrom(type, clone, false)).toBe('IOSv has yes')
  // A node chooses it itself.
  expect(differenceFrom(type, mac, '0c:00:00:00:00:01')).toBeUndefined()
})

test('a text becomes a value of the type, or an error that says what is wrong', () => {
  const number = fieldOf(Type.Integer())
  expect([valueIn(number, '12'), valueIn(number, ' ')]).toEqual([12, null])
  expect(() => valueIn(number, '1x')).toThrow('Member: expected a number')
  const list = fieldOf(Type.Array(Type.Integer()))
  expect(valueIn(list, textOf(list, [1, 2]))).toEqual([1, 2])
  expect(() => valueIn(list, '[1')).toThrow('expected JSON')
  const lines = fieldOf(Type.Array(Type.String()))
  expect(valueIn(lines, `${textOf(lines, ['a', 'b c'])}\n\n d`)).toEqual(['a', 'b c', 'd'])
  const choice = fieldOf(oneOf([1, 2]))
  expect(valueIn(choice, '2')).toBe(2)
})

test('a list of objects is a table, whose rows get the next number and leave out what is empty', () => {
  const ports = { items: [{ port_number: 0, name: 'uplink', type: 'tap' }, { port_number: 3 }] }
  const cloudFields = fieldsOf(JSON.parse(JSON.stringify(kindOf('cloud').update)) as Schema)
  const field = cloudFields.find((it) => it.name === 'ports_mapping')
  if (field?.kind !== 'table') throw new Error('the ports of a cloud are no table')
  expect(field.columns.slice(0, 5).map(({ name, kind }) => `${name}: ${kind}`)).toEqual([
    ...['port_number: number', 'name: text', 'type: choice', 'interface: text', 'lport: number'],
  ])
  expect(nextRow(ports.items, field.columns)).toEqual({ port_number: 4 })
  expect(nextRow([], field.columns)).toEqual({ port_number: 0 })
  const [, name, type, , lport] = field.columns
  if (!name || !type || !lport) throw new Error('a column is missing')
  expect(withCell({ port_number: 1 }, lport, '7')).toEqual({ port_number: 1, lport: 7 })
  expect(withCell({ port_number: 1, lport: 7 }, lport, '')).toEqual({ port_number: 1 })
  expect(withCell({ port_number: 1, name: 'x' }, name, '')).toEqual({ port_number: 1 })
  expect(withCell({ port_number: 1, name: 'x' }, type, 'udp')).toEqual({ port_number: 1, name: 'x', type: 'udp' })
  expect(valueIn(field, textOf(field, ports.items))).toEqual(ports.items)
})

test('the ports of a switch have rows of equal ones', () => {
  const fields = fieldsOf(JSON.parse(JSON.stringify(kindOf('switch').update)) as Schema)
  const field = fields.find((it) => it.name === 'ports_mapping')
  if (field?.kind !== 'ports') throw new Error('the ports of a switch have no rows')
  expect(field.modes).toEqual(['access', 'dot1q', 'qinq'])
  const ports = [0, 1].map((number) => ({
    ...{ port_number: number, name: `Ethernet${number}`, type: 'access', vlan: 10, ethertype: '' },
  }))
  expect(JSON.parse(textOf(field, ports))).toHaveLength(1)
  expect(valueIn(field, textOf(field, ports))).toEqual(ports)
})

test.for(kinds.map((it) => [it.name, it.update] as const))('all settings of a %s have fields', ([, update]) => {
  const fields = fieldsOf(JSON.parse(JSON.stringify(update)) as Schema)
  expect(fields.length).toBe(Object.keys(update.properties).length)
  for (const { title } of fields) expect(title).toMatch(/^[A-Z0-9]/)
})
