/** A program as dynamips loads one: it takes the sections that are to be in memory, and not the segments. */
export function elf(address: number, code: Buffer): Buffer {
  const names = Buffer.from('\0.text\0.shstrtab\0')
  const codeAt = 64
  const namesAt = codeAt + code.length
  const sectionsAt = Math.ceil((namesAt + names.length) / 4) * 4
  const header = words([0x7f454c46, 0x01020100, 0, 0]) // ELF, 32 bits, big-endian, version 1
  const rest = Buffer.alloc(36)
  rest.writeUInt16BE(2, 0) // an executable
  rest.writeUInt16BE(8, 2) // of MIPS
  rest.writeUInt32BE(1, 4)
  rest.writeUInt32BE(address, 8) // where it begins
  rest.writeUInt32BE(sectionsAt, 16)
  rest.writeUInt16BE(52, 24) // bytes of this header
  rest.writeUInt16BE(40, 30) // bytes of a section header
  rest.writeUInt16BE(3, 32) // sections
  rest.writeUInt16BE(2, 34) // the one with their names
  const sections = [
    words([0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
    words([1, 1, 6, address, codeAt, code.length, 0, 0, 4, 0]), // .text: bits, in memory and run
    words([7, 3, 0, 0, namesAt, names.length, 0, 0, 1, 0]), // .shstrtab
  ]
  const file = Buffer.alloc(sectionsAt)
  for (const [part, at] of [
    [header, 0],
    [rest, 16],
    [code, codeAt],
    [names, namesAt],
  ] as const)
    part.copy(file, at)
  return Buffer.concat([file, ...sections])
}

/** Words of 32 bits, the most significant byte first. */
export function words(values: readonly number[]): Buffer {
  const buffer = Buffer.alloc(values.length * 4)
  for (const [index, value] of values.entries()) buffer.writeUInt32BE(value >>> 0, index * 4)
  return buffer
}
