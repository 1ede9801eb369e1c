import { expect, test } from 'vitest'
import { importAppliance } from '../../../src/importers/appliance.ts'
import { Source } from '../../../src/importers/source.ts'

const md5 = '0123456789abcdef0123456789abcdef'
const router = {
  name: 'Router OS',
  category: 'router',
  vendor_name: 'Vendor',
  registry_version: 4,
  symbol: ':/symbols/router_firewall.svg',
  usage: 'admin without a password',
  port_name_format: 'ether{port1}',
  qemu: {
    adapter_type: 'e1000',
    adapters: 8,
    ram: 256,
    arch: 'x86_64',
    console_type: 'telnet',
    kvm: 'allow',
    options: '-nographic',
  },
  images: [
    {
      filename: 'router-7.img',
      version: '7',
      md5sum: md5.toUpperCase(),
      filesize: 134217728,
      direct_download_url: 'https://example.org/7',
    },
    { filename: 'router-6.img', version: '6', md5sum: 'f'.repeat(32), filesize: 67108864 },
  ],
  versions: [
    { name: '7', images: { hda_disk_image: 'router-7.img' } },
    { name: '6', images: { hda_disk_image: 'router-6.img' } },
  ],
}
const imported = (value: object, version?: string) => importAppliance(new Source(JSON.stringify(value)), { version })

test('an appliance is a template, with the images of one of its versions', () => {
  expect(imported(router)).toEqual({
    kind: 'machine-emulator',
    version: '7',
    versions: ['7', '6'],
    template: {
      name: 'Router OS 7',
      template_type: 'machine-emulator',
      category: 'router',
      symbol: ':/symbols/router_firewall.svg',
      usage: 'admin without a password',
      port_name_format: 'ether{port1}',
      adapter_type: 'e1000',
      adapters: 8,
      ram: 256,
      platform: 'x86_64',
      console_type: 'telnet',
      options: '-nographic',
    },
    images: [
      { setting: 'hda_disk_image', filename: 'router-7.img', md5, size: 134217728, from: 'https://example.org/7' },
    ],
    leftOut: [expect.objectContaining({ path: 'qemu.kvm', message: 'is not imported: a machine has no such setting' })],
  })
  expect(imported(router, '6')).toMatchObject({ version: '6', images: [{ filename: 'router-6.img' }] })
})

test('named settings of version 8 inherit those of the default', () => {
  const { qemu: _, ...rest } = router
  const settings = [
    { name: 'usual', default: true, template_type: 'qemu', template_properties: { ram: 512, adapters: 2 } },
    { name: 'large', template_properties: { ram: 4096 } },
  ]
  const versions = [{ name: '8', settings: 'large', images: { hda_disk_image: 'router-7.img' } }]
  expect(imported({ ...rest, registry_version: 8, settings, versions })).toMatchObject({
    kind: 'machine-emulator',
    template: { ram: 4096, adapters: 2 },
  })
})

test('routers of IOU and dynamips', () => {
  const iou = {
    name: 'L3',
    category: 'router',
    iou: {
      ethernet_adapters: 2,
      serial_adapters: 2,
      nvram: 256,
      ram: 256,
      startup_config: 'iou_l3_base_startup-config.txt',
    },
  }
  const versions = [{ name: '15', images: { image: 'l3.bin' } }]
  expect(imported({ ...iou, versions })).toMatchObject({
    kind: 'iou',
    images: [{ setting: 'path', filename: 'l3.bin' }],
    leftOut: [{ path: 'iou.startup_config' }],
  })
  const dynamips = {
    name: '7200',
    category: 'router',
    dynamips: { platform: 'c7200', ram: 512, nvram: 512, slot0: 'C7200-IO-FE' },
  }
  expect(imported({ ...dynamips, versions })).toMatchObject({ kind: 'dynamips', images: [{ setting: 'image' }] })
})

test('a docker appliance is a template of containers, whose image is an archive', () => {
  const frr = {
    ...{ name: 'FRR', category: 'router', registry_version: 4, symbol: ':/symbols/router.svg', usage: 'vtysh' },
    docker: {
      ...{ image: 'frrouting/frr:latest', adapters: 8, console_type: 'telnet', environment: 'A=1', memory: 512 },
      ...{ start_command: 'sh -c "exec bash"', extra_hosts: 'db:10.0.0.9', extra_volumes: ['/etc/frr'] },
    },
  }
  const { kind, template, images, leftOut } = imported(frr)
  expect({ kind, template, images }).toEqual({
    kind: 'container',
    template: {
      name: 'FRR',
      template_type: 'container',
      category: 'router',
      symbol: ':/symbols/router.svg',
      usage: 'vtysh',
      adapters: 8,
      command: 'sh -c "exec bash"',
      environment: 'A=1',
      hosts: '10.0.0.9 db',
      capabilities: ['SYS_ADMIN'],
      ram: 512,
    },
    images: [
      { setting: 'image', filename: 'frrouting_frr_latest.tar', md5: undefined, size: undefined, from: undefined },
    ],
  })
  expect(leftOut.map(({ path, effect }) => `${path} ${effect}`)).toEqual(
    expect.arrayContaining(['docker.extra_volumes left-out', 'docker.image changed']),
  )
  expect(leftOut.map(({ message }) => message).join()).toContain(
    '"patchbay images pull frrouting/frr:latest" fetches it',
  )
})

test.each([
  [{ ...router, registry_version: 9 }, undefined, /registry_version: expected at most 8/],
  [router, '5', /versions: there is no version "5", expected one of 7, 6/],
  [{ name: 'x', docker: { adapters: 1 } }, undefined, /docker: image is missing/],
  [{ name: 'x', traceng: {} }, undefined, /expected settings of an emulator/],
  [{ name: 'x' }, undefined, /expected settings of an emulator, such as "qemu"/],
  [
    { ...router, versions: [{ name: '1', images: { hda_disk_image: '../x' } }] },
    undefined,
    /expected the name of a file, got "..\/x"/,
  ],
  [
    {
      ...router,
      versions: [{ name: '1', images: Object.fromEntries(Array.from({ length: 65 }, (_, it) => [`i${it}`, 'a'])) }],
    },
    undefined,
    /versions\[0\].images: expected at most 64 images, got 65/,
  ],
])('%j is refused: %s', (value, version, message) => {
  expect(() => imported(value, version)).toThrow(
    expect.objectContaining({ status: 400, message: expect.stringMatching(message) }),
  )
})

test('options of an appliance for the terminal of somebody are the console of the node', () => {
  const qemu = { ...router.qemu, ram: 'much', options: '-serial mon:stdio -smbios type=1,product=VM -monitor none' }
  const { kvm: _, ...own } = qemu
  const { template, leftOut } = imported({ ...router, qemu: own })
  expect(template).toMatchObject({ options: '-smbios type=1,product=VM' })
  expect(template).not.toHaveProperty('ram')
  expect(leftOut.map(({ path, message }) => `${path}: ${message}`)).toEqual([
    'qemu.ram: is not imported: a machine cannot have "much"',
    'qemu.options: "-serial mon:stdio", "-monitor none" is not imported: the console of the node is in its place',
  ])
})

test('a disk of an archive of a VM is an image below its directory', () => {
  const versions = [{ name: '1', images: { hda_disk_image: 'x.ova/disk1.vmdk' } }]
  expect(imported({ ...router, versions }).images).toMatchObject([{ filename: 'x.ova/disk1.vmdk' }])
})

test('of a key that an appliance has twice the last one is read', () => {
  const text = JSON.stringify(router).replace('"name":"Router OS"', '"name":"Old","name":"New"')
  const { template, leftOut } = importAppliance(new Source(text))
  expect(template.name).toBe('New 7')
  expect(leftOut[0]).toMatchObject({ path: 'name', message: 'the key occurs twice: the last one is used' })
})
