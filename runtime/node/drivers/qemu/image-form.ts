import { open } from 'node:fs/promises'
import { conflict } from '../../../../src/lib/errors/api-error.ts'
import { quotedPath } from '../../../../src/lib/text/escape.ts'
import type { ImageField } from './properties.ts'

/** The part of a file that is read; the volume descriptor of a CD is at 32 KB. */
const headBytes = 0x8006

/** The type of a file by its first bytes; undefined for an unknown one, such as a raw disk. */
async function formOf(file: string): Promise<Form | undefined> {
  try {
    await using handle = await open(file)
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(headBytes), 0, headBytes, 0)
    return formIn(buffer.subarray(0, bytesRead))
  } catch {
    // The start reports a file that cannot be read.
    return undefined
  }
}

type Form = { readonly is: 'disk' | 'kernel' | 'program' | 'CD'; readonly words: string }

const disks: readonly (readonly [at: number, sign: string, words: string])[] = [
  [0, 'QFI\u00fb', 'a disk in the format qcow2'],
  [0, 'QED\0', 'a disk in the format qed'],
  [0, 'KDMV', 'a disk in the format vmdk'],
  [0, '# Disk DescriptorFile', 'a disk in the format vmdk'],
  [0, 'conectix', 'a disk in the format vpc'],
  [0, 'vhdxfile', 'a disk in the format vhdx'],
  [0, '<<< ', 'a disk in the format vdi'],
]

function formIn(head: Buffer): Form | undefined {
  const has = (at: number, sign: string) => head.toString('latin1', at, at + sign.length) === sign
  for (const [at, sign, words] of disks) if (has(at, sign)) return { is: 'disk', words }
  // Linux boot headers of x86, ARM and RISC-V.
  if (has(0x202, 'HdrS') || has(0x38, 'ARMd') || has(0x30, 'RISCV') || has(0x38, 'RSC\u0005'))
    return { is: 'kernel', words: 'a Linux kernel' }
  if (has(0, '\u007fELF')) return { is: 'program', words: 'a program or kernel (ELF)' }
  if (has(0x8001, 'CD001')) return { is: 'CD', words: 'the image of a CD' }
  if (has(0x1fe, '\u0055\u00aa') && !has(0, 'MZ') && hasPartitions(head))
    return { is: 'disk', words: 'a raw disk with partitions' }
  return undefined
}

/** A partition table: four entries of 16 bytes, each with a flag of 0 or 128, and at least one with a type. */
function hasPartitions(head: Buffer): boolean {
  const entries = [0, 1, 2, 3].map((index) => head.subarray(0x1be + index * 16, 0x1ce + index * 16))
  return entries.every((it) => it[0] === 0 || it[0] === 0x80) && entries.some((it) => it[4] !== 0)
}

/** 409 when the type of a file does not fit its field. */
export async function requireForm(field: ImageField, name: string, file: string): Promise<void> {
  const form = await formOf(file)
  if (form === undefined) return
  const shown = quotedPath(name)
  if (/^hd[a-d]_disk_image$/.test(field) && (form.is === 'kernel' || form.is === 'program'))
    throw conflict(`${field}: ${shown} is ${form.words}; expected a disk, as a kernel goes to kernel_image`)
  if ((field === 'kernel_image' || field === 'initrd') && (form.is === 'disk' || form.is === 'CD')) {
    const setting = form.is === 'disk' ? 'a disk goes to hda_disk_image' : 'a CD goes to cdrom_image'
    const expected = field === 'initrd' ? 'an initial RAM disk (cpio)' : 'a kernel'
    throw conflict(`${field}: ${shown} is ${form.words}; expected ${expected}, as ${setting}`)
  }
}
