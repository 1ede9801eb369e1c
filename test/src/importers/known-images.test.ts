import { expect, test } from 'vitest'
import { headBytes, suggestedFor, suggestedType } from '../../../src/importers/known-images.ts'

const head = (...bytes: (number | string)[]): Uint8Array =>
  Uint8Array.from(bytes.flatMap((part) => (typeof part === 'number' ? part : [...part].map((it) => it.charCodeAt(0)))))
const qcow2 = head('QFI\xfb', 0, 0, 0, 3)
const elf = (data: 1 | 2) => head(0x7f, 'ELF', 1, data, 1)
const tar = new Uint8Array(512)
tar.set(head('ustar'), 257)
const gzip = head(0x1f, 0x8b, 8)
const cd = () => {
  const bytes = new Uint8Array(headBytes)
  bytes.set(head('CD001'), 32_769)
  return bytes
}

test.each([
  ['vios-adventerprisek9-m.vmdk.SPA.157-3.M3', qcow2, 'machine-emulator', 'IOSv', 'router'],
  ['vios_l2-adventerprisek9-m.qcow2', qcow2, 'machine-emulator', 'IOSvL2', 'switch'],
  ['alpine-virt-3.20.qcow2', qcow2, 'machine-emulator', 'Alpine', 'guest'],
  ['frr.qcow2', qcow2, 'machine-emulator', 'FRR', 'router'],
  ['my-router_1.2.qcow2', qcow2, 'machine-emulator', 'my-router', 'guest'],
  ['c3725-adventerprisek9-mz.124-15.T14.bin', elf(2), 'dynamips', 'c3725', 'router'],
  ['c2691-adventerprisek9-mz.bin', elf(2), 'dynamips', 'c2691', 'router'],
  ['i86bi-linux-l3-adventerprisek9.iol', elf(1), 'iou', 'IOU-L3', 'router'],
  ['i86bi_linux_l2.bin', elf(1), 'iou', 'IOU-L2', 'switch'],
  ['frrouting_frr_v8.4.0.tar', tar, 'container', 'FRR', 'router'],
  ['nginx_1.25.tar', tar, 'container', 'nginx', 'guest'],
  ['nginx.tar.gz', gzip, 'container', 'nginx', 'guest'],
])('%s is taken for what its name and its bytes say', (file, bytes, kind, name, category) => {
  expect(suggestedType(file, bytes)).toMatchObject({ kind, name, category })
})

test('the image is among the settings, under the setting that the kind has for it', () => {
  expect(suggestedType('disk.qcow2', qcow2)?.settings).toEqual({ hda_disk_image: 'disk.qcow2' })
  expect(suggestedType('live.iso', cd())?.settings).toEqual({ cdrom_image: 'live.iso', boot_priority: 'd' })
  expect(suggestedType('c7200.bin', elf(2))?.settings).toEqual({ image: 'c7200.bin', platform: 'c7200', ram: 512 })
  expect(suggestedType('x.iol', elf(1))?.settings).toMatchObject({ path: 'x.iol' })
})

test('a disk without a name that is known is a guest with the settings of the kind', () => {
  const raw = new Uint8Array(512)
  raw.set([0x55, 0xaa], 510)
  expect(suggestedType('notes', raw)).toMatchObject({ kind: 'machine-emulator', name: 'notes', category: 'guest' })
})

test('a file from which no node starts suggests nothing', () => {
  expect(suggestedType('notes.txt', head('hello'))).toBeUndefined()
  expect(suggestedType('empty.bin', new Uint8Array())).toBeUndefined()
  expect(suggestedType('disk.img.gz', gzip)).toBeUndefined()
})

test('an image that is stored suggests the same by its name, where its kind is known', () => {
  expect(suggestedFor('dynamips', 'ios/c3745-x.bin')).toEqual(suggestedType('ios/c3745-x.bin', elf(2)))
  expect(suggestedFor('iou', 'l2.iol')).toEqual(suggestedType('l2.iol', elf(1)))
  expect(suggestedFor('machine-emulator', 'live.iso')).toEqual(suggestedType('live.iso', cd()))
  expect(suggestedFor('container', 'frr.tar')).toEqual(suggestedType('frr.tar', tar))
  expect(suggestedFor('pc', 'live.iso')).toBeUndefined()
})
