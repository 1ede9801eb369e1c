/** A disk as QEMU makes one (qemu docs/interop/qcow2.rst), without content: its machine stays at the words of its firmware. */
export function emptyDisk() {
  const disk = Buffer.alloc(4 << 16)
  disk.write('QFI\xfb', 0, 'latin1')
  disk.writeUInt32BE(2, 4)
  disk.writeUInt32BE(16, 20)
  disk.writeBigUInt64BE(1n << 20n, 24)
  disk.writeUInt32BE(1, 36)
  disk.writeBigUInt64BE(3n << 16n, 40)
  disk.writeBigUInt64BE(1n << 16n, 48)
  disk.writeUInt32BE(1, 56)
  // The table of reference counts, its block, and a count for each of the four clusters.
  disk.writeBigUInt64BE(2n << 16n, 1 << 16)
  for (let cluster = 0; cluster < 4; cluster++) disk.writeUInt16BE(1, (2 << 16) + 2 * cluster)
  return disk
}
