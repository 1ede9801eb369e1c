import { headOf } from '../storage/file-head.ts'

/** Bytes of the headers. */
const headBytes = 512
/** Bytes of a sector in the header of a VMDK. */
const sector = 512n

/** The bytes of the disk that a guest sees in an image, from the header of a qcow2, a VMDK or a VDI; undefined for other files. */
export async function virtualSizeOf(file: string): Promise<number | undefined> {
  // A list does not fail for the sake of a size.
  const head = await headOf(file, headBytes).catch(() => undefined)
  return head?.length === headBytes ? sizeIn(head) : undefined
}

function sizeIn(head: Buffer): number | undefined {
  const size = sizeField(head)
  return size === undefined || size > BigInt(Number.MAX_SAFE_INTEGER) ? undefined : Number(size)
}

/** qcow2: docs/interop/qcow2.rst of QEMU; VMDK: `SparseExtentHeader` of its specification; VDI: `VdiHeader` of QEMU's block/vdi.c. */
function sizeField(head: Buffer): bigint | undefined {
  if (head.toString('latin1', 0, 4) === 'QFI\xfb') return head.readBigUInt64BE(24)
  if (head.toString('latin1', 0, 4) === 'KDMV') return head.readBigUInt64LE(12) * sector
  return head.readUInt32LE(64) === 0xbeda107f ? head.readBigUInt64LE(368) : undefined
}
