/** An NVRAM file as the descriptions of its layout have it, built apart from the code under test. */
export interface Described {
  readonly kb: number
  readonly version?: number
  readonly format?: number
  /** As it is stored. */
  readonly startup: string | Buffer
  readonly plainBytes?: number
  /** Left out: not even a header. */
  readonly own?: string | Buffer
  readonly ownFormat?: number
  readonly padding?: number
  /** What is somewhere in the file, by offset. */
  readonly parts?: Readonly<Record<number, Buffer>>
  readonly checksum?: number
}

const hex = (value: number, digits: number) => value.toString(16).padStart(digits, '0')

export function nvramFile(it: Described): Buffer {
  const startup = Buffer.from(it.startup)
  const dataEnd = 36 + startup.length
  const base = 0x10000000
  const chunks = [
    Buffer.from(
      [
        'abcd',
        hex(it.format ?? 1, 4),
        '0000',
        hex(it.version ?? 0x0f04, 4),
        hex(base + 36, 8),
        hex(base + dataEnd, 8),
      ].join('') + [hex(startup.length, 8), hex(it.plainBytes ?? 0, 8), '00'.repeat(12)].join(''),
      'hex',
    ),
    startup,
    Buffer.alloc(it.padding ?? 0),
  ]
  if (it.own !== undefined) {
    const own = Buffer.from(it.own)
    const start = base + dataEnd + (it.padding ?? 0) + 16
    const header = `fedc${hex(it.ownFormat ?? 1, 4)}${hex(start, 8)}${hex(start + own.length, 8)}${hex(own.length, 8)}`
    chunks.push(Buffer.from(header, 'hex'), own)
  }
  const used = Buffer.concat(chunks)
  const file = Buffer.concat([used, Buffer.alloc(it.kb * 1024 - used.length)])
  for (const [at, part] of Object.entries(it.parts ?? {})) part.copy(file, Number(at))
  file.writeUInt16BE(it.checksum ?? checksumOf(file), 4)
  return file
}

/** Word after word, a carry comes back at the lower end; then the complement. */
export function checksumOf(file: Buffer): number {
  const half = Buffer.from(file.subarray(0, file.length / 2))
  half[4] = 0
  half[5] = 0
  let sum = 0
  for (let at = 0; at < half.length; at += 2) {
    sum += half.readUInt16BE(at)
    if (sum >= 0x10000) sum -= 0xffff
  }
  return 0xffff - sum
}

/** A sector of a file of the router. */
export const fileSector = (fill: number) => Buffer.concat([Buffer.from('dcba', 'hex'), Buffer.alloc(1022, fill)])
