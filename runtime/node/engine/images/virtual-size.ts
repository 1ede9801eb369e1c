import { constants } from 'node:fs'
import { open } from 'node:fs/promises'

/** Bytes of the headers. */
const headBytes = 512
/** Bytes of a sector in the header of a VMDK. */
const sector = 512n

/** The bytes of the disk that a guest sees in an image, from the header of a qcow2, a VMDK or a VDI; undefined for other files. */
export async function virtualSizeOf(file: string): Promise<number | undefined> {
  // A FIFO that took the place of the file must not block.
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK).catch(() => undefined)
  if (handle === undefined) return undefined
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(headBytes), 0, headBytes, 0)
    return bytesRead === headBytes ? sizeIn(buffer) : undefined
  } catch {
    return undefined
  } finally {
    await handle.close()
  }
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
