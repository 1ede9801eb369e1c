import { crc32 } from 'node:zlib'

/** A member of a zip archive as it is written: whatever is given is written, true or not. */
export interface ZipMember {
  readonly name: string
  readonly data?: string | Buffer
  /** The size that the archive says. */
  readonly size?: number
  readonly crc?: number
  readonly flags?: number
  /** Method of compression; `data` is written as it is. */
  readonly method?: number
  /** Type and mode of the file (inode(7)). */
  readonly mode?: number
}

/** A zip archive (APPNOTE.TXT 4.3), also one that no program would make. `repeat`: the directory has the last member so many times. */
export function zipOf(members: readonly ZipMember[], { repeat = 1 } = {}): Buffer {
  const locals: Buffer[] = []
  const central: Buffer[] = []
  let offset = 0
  for (const { name, data = '', size, crc, flags = 0x800, method = 0, mode = 0o100600 } of members) {
    const bytes = Buffer.from(data)
    const text = Buffer.from(name)
    const facts = Buffer.alloc(26)
    facts.writeUInt16LE(20, 0)
    facts.writeUInt16LE(flags, 2)
    facts.writeUInt16LE(method, 4)
    facts.writeUInt16LE(0x21, 8)
    facts.writeUInt32LE(crc ?? crc32(bytes), 10)
    facts.writeUInt32LE(bytes.length, 14)
    facts.writeUInt32LE(size ?? bytes.length, 18)
    facts.writeUInt16LE(text.length, 22)
    const local = Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), facts, text, bytes])
    const rest = Buffer.alloc(14)
    rest.writeUInt32LE((mode << 16) >>> 0, 6)
    rest.writeUInt32LE(offset, 10)
    central.push(Buffer.concat([Buffer.from('PK\x01\x02\x14\x03', 'latin1'), facts, rest, text]))
    locals.push(local)
    offset += local.length
  }
  const again = Array.from({ length: repeat - 1 }, (_, at) => {
    const entry = Buffer.from(central.at(-1) as Buffer)
    entry.write(String.fromCharCode(0x62 + at), 46)
    return entry
  })
  const directory = Buffer.concat([...central, ...again])
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06', 'latin1')
  end.writeUInt16LE(members.length + again.length, 8)
  end.writeUInt16LE(members.length + again.length, 10)
  end.writeUInt32LE(directory.length, 12)
  end.writeUInt32LE(offset, 16)
  return Buffer.concat([...locals, directory, end])
}
