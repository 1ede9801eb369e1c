import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readConfigs, writeConfigs } from '../../../../runtime/node/drivers/iou/nvram.ts'
import { compressLzc } from './lzc-encoder.ts'
import { checksumOf, fileSector, nvramFile } from './nvram-file.ts'

const conflict = (part: string) => expect.objectContaining({ status: 409, message: expect.stringContaining(part) })
/** The begin of a file, as hex without blanks. */
const begin = (file: Buffer, bytes: number) => file.subarray(0, bytes).toString('hex')
const bytes = (text: string) => text.replaceAll(/\/\/.*|\s/g, '')

/** 8 KB, version 0F04: "end\n" and "key\n". */
const golden = bytes(`
  abcd 0001 // raw
  579e      // checksum: the other words add up to 3A85E, the carry makes that A861, and this is its complement
  0f04      // version
  10000024 10000028 00000004 // from, to, length
  00000000 00000000 00000000 00000000
  656e640a
  fedc 0001
  10000038 1000003c 00000004
  6b65790a
`)

test('a new file, byte for byte', () => {
  const { nvram, warnings } = writeConfigs(undefined, { startup: 'end\n', private: 'key\n' }, 8)
  expect(begin(nvram, 60)).toBe(golden)
  expect(nvram.subarray(60).every((byte) => byte === 0)).toBe(true)
  expect(nvram.length).toBe(8192)
  expect(warnings).toEqual([])
  expect(readConfigs(nvram)).toEqual({ startup: 'end\n', private: 'key\n' })
})

test.for([
  // Nothing to fill up.
  [64, 0x0f04, 4, 0],
  [128, 0x0f00, 4, 0],
  [64, 0x0f04, 5, 3],
  [64, 0x0f04, 6, 2],
  [64, 0x0f01, 7, 1],
  // An old version, or a half of 64 KB: four more.
  [64, 0x0f00, 5, 7],
  [64, 0x0c04, 7, 5],
  [128, 0x0f04, 5, 7],
  [127, 0x0f04, 5, 3],
  [1024, 0x0f04, 6, 6],
] as const)('%i KB of version %i with a text of %i has %i bytes after it', ([kb, version, length, padding]) => {
  const before = nvramFile({ kb, version, startup: 'old\n', own: '' })
  const [startup, own] = ['x'.repeat(length), 'private']
  const { nvram } = writeConfigs(before, { startup, private: own }, kb)
  expect(nvram.equals(nvramFile({ kb, version, startup, own, padding }))).toBe(true)
  expect(readConfigs(nvram)).toEqual({ startup, private: own })
})

test('for an image that is not known the text is filled up instead', () => {
  for (let length = 0; length < 9; length++) {
    const { nvram } = writeConfigs(undefined, { startup: 'x'.repeat(length), private: 'p' }, 256)
    const startup = 'x'.repeat(length) + '\n'.repeat((4 - (length % 4)) % 4)
    expect(nvram.equals(nvramFile({ kb: 256, startup, own: 'p' }))).toBe(true)
    expect(readConfigs(nvram)).toEqual({ startup: startup === '' ? null : startup, private: 'p' })
  }
})

test('a private configuration is found behind either padding', () => {
  for (const padding of [3, 7]) {
    expect(readConfigs(nvramFile({ kb: 64, startup: 'abcde', own: 'p', padding }))).toEqual({
      startup: 'abcde',
      private: 'p',
    })
  }
  expect(readConfigs(nvramFile({ kb: 64, startup: 'abcd' }))).toEqual({ startup: 'abcd', private: null })
})

test('an empty private configuration, or one with only "end", is absent', () => {
  for (const own of ['', '\nend\n', '\r\nend\r\n']) {
    expect(readConfigs(nvramFile({ kb: 8, startup: 'abcd', own })).private).toBe(null)
  }
  for (const own of ['end\n', '\nend', '\n\nend\n']) {
    expect(readConfigs(nvramFile({ kb: 8, startup: 'abcd', own })).private).toBe(own)
  }
})

test('lines have the line ends of routers', () => {
  const { nvram } = writeConfigs(undefined, { startup: 'a\r\nbc\r\n', private: 'p\r\n' }, 8)
  expect(nvram.equals(nvramFile({ kb: 8, startup: 'a\nbc\n\n\n\n', own: 'p\n' }))).toBe(true)
  expect(readConfigs(nvramFile({ kb: 8, startup: 'ab\r\n', own: 'c\r\n' }))).toEqual({
    startup: 'ab\n',
    private: 'c\n',
  })
})

test('characters beyond ASCII are preserved; bytes that are not UTF-8 are shown one by one', () => {
  const { nvram } = writeConfigs(undefined, { startup: 'banner é€ü', private: '\ufeffß' }, 8)
  expect(readConfigs(nvram)).toEqual({ startup: 'banner é€ü\n\n', private: '\ufeffß' })
  expect(readConfigs(nvramFile({ kb: 8, startup: Buffer.from('e9fc0003', 'hex') })).startup).toBe('éü\0\x03')
})

test('a compressed file', () => {
  const text = 'interface Ethernet0/0\n'.repeat(40)
  const data = compressLzc(Buffer.from(text))
  const padding = -data.length & 3
  const file = { kb: 16, format: 2, startup: data, plainBytes: text.length, own: 'key', padding }
  expect(readConfigs(nvramFile(file))).toEqual({ startup: text, private: 'key' })
  expect(readConfigs(nvramFile({ ...file, own: compressLzc(Buffer.from('key\n')), ownFormat: 2 })).private).toBe(
    'key\n',
  )
  for (const plainBytes of [0, text.length - 1, text.length + 1, 5 << 20]) {
    expect(() => readConfigs(nvramFile({ ...file, plainBytes }))).toThrow(conflict('damaged'))
  }
  expect(() => readConfigs(nvramFile({ ...file, startup: data.subarray(0, -4) }))).toThrow(conflict('is incomplete'))
  // What is not given stays as it is stored.
  const { nvram } = writeConfigs(nvramFile(file), { startup: null, private: 'other' }, 16)
  expect(nvram.equals(nvramFile({ ...file, own: 'other' }))).toBe(true)
})

test('null leaves a configuration as it is, an empty text removes it', () => {
  const before = nvramFile({ kb: 8, startup: 'abcd', own: 'key' })
  expect(writeConfigs(before, { startup: null, private: null }, 8).nvram.equals(before)).toBe(true)
  const written = writeConfigs(before, { startup: '', private: null }, 8).nvram
  expect(readConfigs(written)).toEqual({ startup: null, private: 'key' })
  expect(readConfigs(writeConfigs(before, { startup: null, private: '' }, 8).nvram)).toEqual({
    startup: 'abcd',
    private: null,
  })
})

test('files and the second half stay, and the rest of a longer configuration is cleared', () => {
  const parts = { 20480: fileSector(7), 23552: fileSector(9), 32768: Buffer.alloc(32768, 0xee) }
  const before = nvramFile({ kb: 64, startup: 'x'.repeat(9000), own: 'secret', parts })
  const { nvram } = writeConfigs(before, { startup: 'shrt', private: '' }, 64)
  expect(nvram.equals(nvramFile({ kb: 64, startup: 'shrt', own: '', parts }))).toBe(true)
})

test('a configuration may reach up to the first file, or to the last two kilobytes', () => {
  const parts = { 12288: fileSector(1), 20480: fileSector(2) }
  for (const [file, room] of [
    [nvramFile({ kb: 64, startup: '', own: '', parts }), 12288],
    [nvramFile({ kb: 64, startup: '', own: '' }), 30720],
    // Those that begin in the last two kilobytes take nothing more.
    [nvramFile({ kb: 64, startup: '', own: '', parts: { 30720: fileSector(3) } }), 30720],
    [undefined, 30720],
  ] as const) {
    const startup = 'x'.repeat(room - 36 - 16)
    const { nvram } = writeConfigs(file, { startup, private: '' }, 64)
    expect(readConfigs(nvram)).toEqual({ startup, private: null })
    expect(nvram.subarray(room).equals(file?.subarray(room) ?? Buffer.alloc(nvram.length - room))).toBe(true)
    expect(() => writeConfigs(file, { startup, private: 'x' }, 64)).toThrow(
      conflict(`needs ${room + 1} bytes, and the NVRAM of 64 KB has ${room} for it; set a larger nvram`),
    )
  }
})

test('sectors are counted from the end of the half, which may not be whole kilobytes', () => {
  const file = nvramFile({ kb: 9, startup: '', own: '', parts: { 1536: fileSector(1) } })
  const startup = 'x'.repeat(1536 - 52)
  expect(readConfigs(writeConfigs(file, { startup, private: '' }, 9).nvram).startup).toBe(startup)
  expect(() => writeConfigs(file, { startup, private: 'x' }, 9)).toThrow(conflict('1536'))
})

test('text that looks like a file inside a configuration is not a file', () => {
  const before = nvramFile({ kb: 64, startup: Buffer.alloc(3000, fileSector(0xba).subarray(0, 2)), own: '' })
  expect(before.readUInt16BE(1024)).toBe(0xdcba)
  const startup = 'x'.repeat(20_000)
  expect(readConfigs(writeConfigs(before, { startup, private: '' }, 64).nvram).startup).toBe(startup)
})

test('a router may fill its half to the last byte', () => {
  const startup = 'x'.repeat(4096 - 36)
  expect(readConfigs(nvramFile({ kb: 8, startup }))).toEqual({ startup, private: null })
  const own = 'x'.repeat(4096 - 36 - 4 - 16)
  expect(readConfigs(nvramFile({ kb: 8, startup: 'abcd', own }))).toEqual({ startup: 'abcd', private: own })
  // Half a header is none.
  const parts = { 4088: Buffer.from('fedc0001', 'hex') }
  expect(readConfigs(nvramFile({ kb: 8, startup: 'x'.repeat(4088 - 36), parts })).private).toBe(null)
})

test('another size makes a new file, with the configuration that is not given, and reports what is lost', () => {
  const before = nvramFile({
    kb: 64,
    version: 0x0c00,
    startup: 'abcde',
    own: 'key',
    padding: 7,
    parts: { 20480: fileSector(7) },
  })
  const { nvram, warnings } = writeConfigs(before, { startup: null, private: 'new' }, 128)
  expect(nvram.equals(nvramFile({ kb: 128, version: 0x0c00, startup: 'abcde', own: 'new', padding: 7 }))).toBe(true)
  expect(warnings).toEqual([
    'The NVRAM now has 128 KB instead of 64: a new one is created, without the files that the router had stored in it',
  ])
  const cut = writeConfigs(before.subarray(0, 4000), { startup: 'a', private: null }, 64)
  expect(readConfigs(cut.nvram)).toEqual({ startup: 'a\n\n\n', private: null })
  expect(cut.warnings).toEqual([
    'The NVRAM now has 64 KB instead of 4: a new one is created, without the content of the old one, which cannot be read',
  ])
})

test('a file without any configuration is one of an unknown image', () => {
  const blank = Buffer.alloc(65536)
  blank.set(fileSector(5), 8192)
  blank.fill(6, 32768)
  expect(readConfigs(blank)).toEqual({ startup: null, private: null })
  const { nvram } = writeConfigs(blank, { startup: 'x', private: '' }, 64)
  const parts = { 8192: fileSector(5), 32768: Buffer.alloc(32768, 6) }
  expect(nvram.equals(nvramFile({ kb: 64, startup: 'x\n\n\n', own: '', parts }))).toBe(true)
})

test.for([
  ['nothing', Buffer.alloc(0), 'it has 0 bytes, expected 8 to 1024 KB'],
  ['less than the least', Buffer.alloc(7 * 1024), 'it has 7168 bytes'],
  ['more than the most', Buffer.alloc(1025 * 1024), 'it has 1049600 bytes'],
  ['half a kilobyte', Buffer.alloc(8704), 'it has 8704 bytes'],
  ['something else', Buffer.alloc(8192, 'x'), 'it has no startup header'],
  [
    'another format',
    nvramFile({ kb: 8, format: 3, startup: '' }),
    'the startup configuration has an unknown format, 3',
  ],
  [
    'another private format',
    nvramFile({ kb: 8, startup: '', own: '', ownFormat: 0 }),
    'the private configuration has an unknown format, 0',
  ],
  [
    'too long',
    nvramFile({ kb: 8, startup: 'x'.repeat(4061) }),
    'the startup configuration is longer than its half of the file',
  ],
  [
    'too long a private one',
    nvramFile({ kb: 8, startup: '', own: 'x'.repeat(4045) }),
    'the private configuration is longer than its half of the file',
  ],
  ['a wrong checksum', nvramFile({ kb: 8, startup: 'abcd', checksum: 1 }), 'its checksum is wrong'],
] as const)('%s is refused', ([, file, why]) => {
  expect(() => readConfigs(file)).toThrow(conflict(`The NVRAM file is damaged: ${why}`))
  if (file.length === 8192 && !why.includes('checksum')) {
    expect(() => writeConfigs(file, { startup: 'a', private: null }, 8)).toThrow(conflict(why))
  }
})

test('a file with another checksum is read on request, and can be written', () => {
  const file = nvramFile({ kb: 8, startup: 'abcd', checksum: 1 })
  expect(readConfigs(file, { anySum: true }).startup).toBe('abcd')
  expect(readConfigs(writeConfigs(file, { startup: 'efgh', private: null }, 8).nvram).startup).toBe('efgh')
})

test('the sum without its complement counts too', () => {
  const right = nvramFile({ kb: 8, startup: 'abcd' })
  const other = nvramFile({ kb: 8, startup: 'abcd', checksum: 0xffff - right.readUInt16BE(4) })
  expect(readConfigs(other).startup).toBe('abcd')
})

test('an impossible size is refused', () => {
  for (const kb of [7, 1025, 8.5, Number.NaN]) {
    expect(() => writeConfigs(undefined, { startup: null, private: null }, kb)).toThrow(
      conflict('nvram: expected a size'),
    )
  }
})

const anyKb = fc.constantFrom(8, 9, 63, 64, 127, 128, 129, 256)
const text = (maxLength: number) =>
  fc.oneof(
    fc.string({ maxLength, unit: fc.constantFrom(...'abc !\n/é€\x03') }),
    fc.integer({ min: 0, max: maxLength }).map((length) => 'x'.repeat(length)),
  )

test('any configurations that are written are read unchanged', () => {
  const version = fc.constantFrom(0x0c04, 0x0eff, 0x0f00, 0x0f01, 0x0f04)
  fc.assert(
    fc.property(anyKb, version, text(500), text(60), (kb, version, startup, own) => {
      const before = nvramFile({ kb, version, startup: 'before', own: 'x', padding: 2 })
      const { nvram } = writeConfigs(before, { startup, private: own }, kb)
      const expected = { startup: startup || null, private: own === '' || own === '\nend\n' ? null : own }
      expect(readConfigs(nvram)).toEqual(expected)
      const length = Buffer.byteLength(startup)
      const gap = (4 - (length % 4)) % 4
      const padding = gap > 0 && (version <= 0x0f00 || kb >= 128) ? gap + 4 : gap
      expect(nvram.equals(nvramFile({ kb, version, startup, own, padding }))).toBe(true)
      expect(writeConfigs(nvram, { startup, private: own }, kb).nvram.equals(nvram)).toBe(true)
    }),
    { numRuns: 60 },
  )
})

test('a damaged file is read or refused, and never changed beyond its first half', () => {
  const data = compressLzc(Buffer.from('interface Ethernet0/0\n'.repeat(9)))
  const files = [
    nvramFile({ kb: 8, startup: 'abcde', own: 'key', padding: 3, parts: { 2048: fileSector(1) } }),
    nvramFile({ kb: 8, format: 2, startup: data, plainBytes: 198, own: 'key', padding: -data.length & 3 }),
  ]
  const change = fc.tuple(fc.nat({ max: 160 }), fc.oneof(fc.nat({ max: 255 }), fc.constantFrom(0, 1, 2, 255)))
  fc.assert(
    fc.property(fc.constantFrom(...files), fc.array(change, { minLength: 1, maxLength: 12 }), (file, changes) => {
      const other = Buffer.from(file)
      for (const [at, value] of changes) other[at] = value
      const attempts = [
        () => readConfigs(other),
        () => readConfigs(other, { anySum: true }),
        () => {
          const { nvram } = writeConfigs(other, { startup: 'new', private: null }, 8)
          expect(readConfigs(nvram).startup).toMatch(/^new\n?$/)
          expect(nvram.subarray(4096).equals(file.subarray(4096))).toBe(true)
          expect(nvram.readUInt16BE(4)).toBe(checksumOf(nvram))
        },
      ]
      for (const attempt of attempts) {
        try {
          attempt()
        } catch (error) {
          if (!(error instanceof Error) || !('status' in error)) throw error
          expect(error).toMatchObject({ status: 409 })
        }
      }
    }),
    { numRuns: 600 },
  )
})

test('a file that ends early is refused', () => {
  const file = nvramFile({ kb: 64, startup: 'x'.repeat(20_000), own: 'key' })
  for (const length of [0, 1, 35, 36, 1024, 8192, 16384, 30000, 65535]) {
    expect(() => readConfigs(file.subarray(0, length))).toThrow(conflict('damaged'))
  }
  // Only zeros are missing of this one, and it is a file of 40 KB as good as any.
  expect(readConfigs(file.subarray(0, 40960)).private).toBe('key')
})
