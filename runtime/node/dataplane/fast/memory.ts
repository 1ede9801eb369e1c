import type { Libc, Pointer } from '../../os/system/libc.ts'

const high = 4294967296

/** A memory block for system calls, with the fields of C structs at offsets. Little-endian. */
export class Memory {
  readonly bytes: Uint8Array
  readonly view: DataView
  readonly address: Pointer

  constructor(libc: Libc, size: number) {
    this.bytes = new Uint8Array(new ArrayBuffer(size))
    this.view = new DataView(this.bytes.buffer)
    this.address = libc.addressOf(this.bytes)
  }

  u16(offset: number, value: number): void {
    this.view.setUint16(offset, value, true)
  }

  u32(offset: number, value: number): void {
    this.view.setUint32(offset, value, true)
  }

  /** A 64-bit field: an address or a size. */
  u64(offset: number, value: number): void {
    this.view.setUint32(offset, value, true)
    this.view.setUint32(offset + 4, value / high, true)
  }

  /** The 64-bit address in a field. */
  pointer(offset: number): Pointer {
    return this.view.getUint32(offset, true) + this.view.getUint32(offset + 4, true) * high
  }
}
