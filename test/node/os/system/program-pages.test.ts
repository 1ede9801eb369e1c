import { expect, test } from 'vitest'
import { libcIfAny } from '../../../../runtime/node/os/system/libc.ts'
import { dropProgramPages, unchangedMappings } from '../../../../runtime/node/os/system/program-pages.ts'
import { provided, testWith } from '../../../support/test-with.ts'

const mapping = (range: string, flags: string, path: string, anonymousKb: number): string =>
  `${range} ${flags} 00000000 fe:00 1234    ${path}\nSize: 8 kB\nRss: 8 kB\nAnonymous:             ${anonymousKb} kB\nVmFlags: rd mr\n`

test('only what is as in the file of the program is unmapped', () => {
  const smaps = [
    mapping('00400000-00402000', 'r--p', '/usr/bin/node', 0),
    mapping('00402000-00405000', 'r-xp', '/usr/bin/node', 0),
    // Relocated addresses, and variables.
    mapping('00405000-00406000', 'r--p', '/usr/bin/node', 4),
    mapping('00406000-00407000', 'rw-p', '/usr/bin/node', 0),
    mapping('7f0000000000-7f0000001000', 'r--p', '/usr/lib/libc.so.6', 0),
    '7ffc00000000-7ffc00001000 r--p 00000000 00:00 0 \nAnonymous:             0 kB\n',
  ].join('')
  expect(unchangedMappings(smaps, '/usr/bin/node')).toEqual([
    { from: 0x400000, length: 0x2000 },
    { from: 0x402000, length: 0x3000 },
  ])
  expect(unchangedMappings('', '/usr/bin/node')).toEqual([])
})

const libc = libcIfAny()
testWith(provided(libc !== undefined, 'libc cannot be loaded'))(
  'the pages of the file of Node go from the memory of the process, and come back where they are needed',
  async () => {
    const before = process.memoryUsage.rss()
    if (libc !== undefined) dropProgramPages(libc)
    expect(before - process.memoryUsage.rss()).toBeGreaterThan(10_000_000)
    expect(await new Response(new Blob(['still here'])).text()).toBe('still here')
  },
)
