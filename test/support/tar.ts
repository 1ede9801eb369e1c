/** A member of a tar archive (POSIX.1, pax(1)). */
export interface TarEntry {
  readonly name: string | Uint8Array
  readonly type?: keyof typeof types
  readonly mode?: number
  /** Where a link leads. */
  readonly link?: string
  readonly data?: string | Uint8Array
  readonly device?: readonly [major: number, minor: number]
}

const types = { file: '0', hardLink: '1', link: '2', character: '3', block: '4', directory: '5', pipe: '6' } as const

/** The header of a member, whose content follows it in blocks of 512 bytes; it says just what the entry does. */
export function tarHeader(
  { name, type = 'file', mode = 0o644, link = '', device }: TarEntry,
  size: number,
): Uint8Array {
  const header = Buffer.alloc(512)
  const octal = (value: number, at: number, length: number) =>
    header.write(value.toString(8).padStart(length - 1, '0'), at, 'latin1')
  Buffer.from(name as string).copy(header, 0, 0, 100)
  for (const [value, at, length] of [
    [mode, 100, 8],
    [0, 108, 8],
    [0, 116, 8],
    [size, 124, 12],
    [0, 136, 12],
  ] as const)
    octal(value, at, length)
  header.write(`        ${types[type]}`, 148, 'latin1')
  header.write(link, 157, 100, 'latin1')
  header.write('ustar\x0000', 257, 'latin1')
  if (device !== undefined) for (const [index, number] of device.entries()) octal(number, 329 + 8 * index, 8)
  octal(
    header.reduce((sum, byte) => sum + byte, 0),
    148,
    7,
  )
  return header
}

/** An archive of the entries, in their order. */
export function tarOf(entries: readonly TarEntry[]): Uint8Array {
  const parts = entries.flatMap((entry) => {
    const data = Buffer.from((entry.data ?? '') as string)
    return [tarHeader(entry, data.length), data, Buffer.alloc((512 - (data.length % 512)) % 512)]
  })
  return Buffer.concat([...parts, Buffer.alloc(1024)])
}
