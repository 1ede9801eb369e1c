import { readdir, readFile, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { nvramName } from '../../../../runtime/node/drivers/iou/configs.ts'
import {
  pullConfigs,
  pushConfigs,
  type ReadContext,
  storedConfigs,
} from '../../../../runtime/node/drivers/iou/nvram-files.ts'
import {
  privateConfigName as own,
  startupConfigName as startup,
} from '../../../../runtime/node/engine/nodes/router-configs.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { checksumOf, nvramFile } from './nvram-file.ts'

const id = 7
const changed: ReadContext = { isRunning: true, why: 'changed' }
const requestedRunning: ReadContext = { isRunning: true, why: 'requested' }
const requested: ReadContext = { isRunning: false, why: 'requested' }
const over: ReadContext = { isRunning: false, why: 'in case' }
const otherSum = { status: 409, message: 'The NVRAM file is damaged: its checksum is wrong' }

/** An NVRAM whose checksum is that of another way to sum. */
function oddly(text: string): Buffer {
  const file = nvramFile({ kb: 8, startup: text })
  file.writeUInt16BE(checksumOf(file) ^ 0x55, 4)
  return file
}

/** A directory with a configuration, and an NVRAM that was written later, or (seconds) earlier. */
async function router(nvram: Buffer, { earlier = 0, text = 'hostname old\n' } = {}) {
  const directory = await freshDirectory()
  const at = (name: string) => join(directory, name)
  await writeFile(at(startup), text)
  await writeFile(at(nvramName(id)), nvram)
  const now = Date.now() / 1000
  await utimes(at(startup), now - 10, now - 10)
  await utimes(at(nvramName(id)), now - earlier, now - earlier)
  const textOf = (name: string) => readFile(at(name), 'utf8').catch(() => null)
  return { directory, at, read: textOf, pull: (look: ReadContext) => pullConfigs(directory, id, look) }
}

test('the stored configurations of a router are written to its files at every read', async () => {
  for (const look of [changed, requestedRunning, requested, over]) {
    const { pull, read } = await router(nvramFile({ kb: 8, startup: 'hostname new\n', own: 'key\n', padding: 3 }))
    expect(await pull(look)).toEqual([])
    expect([await read(startup), await read(own), await read(`${startup}.bak`)]).toEqual([
      'hostname new\n',
      'key\n',
      null,
    ])
  }
})

test('while the router runs, an incomplete file is not used', async () => {
  const whole = nvramFile({ kb: 8, startup: 'hostname new\ninterface Ethernet0/0\n' })
  whole.fill('x', 50, 60)
  const { pull, read } = await router(whole)
  await expect(pull(changed)).rejects.toMatchObject(otherSum)
  expect(await read(startup)).toBe('hostname old\n')
})

test('an NVRAM with another checksum is used after the end of the router, and the replaced files are kept', async () => {
  for (const look of [requested, over]) {
    const { pull, read, directory } = await router(oddly('hostname new\n'))
    expect(await pull(look)).toEqual([startup])
    expect([await read(startup), await read(`${startup}.bak`)]).toEqual(['hostname new\n', 'hostname old\n'])
    // The same again is nothing to be told of.
    expect(await pull(requested)).toEqual([])
    expect((await storedConfigs(directory, id, look))?.configs?.startup).toBe('hostname new\n')
  }
})

test('at a request while the router runs, such an NVRAM is used if it does not change for some time', async () => {
  const still = await router(oddly('hostname new\n'))
  expect(await still.pull(requestedRunning)).toEqual([startup])
  const busy = await router(oddly('hostname 0\n'))
  const done = new AbortController()
  const writing = (async () => {
    for (let number = 1; !done.signal.aborted; number++) {
      await writeFile(busy.at(nvramName(id)), oddly(`hostname ${number}\n`))
      await delay(5)
    }
  })()
  await expect(busy.pull(requestedRunning)).rejects.toMatchObject({ status: 409 })
  done.abort()
  await writing
  expect(await busy.read(startup)).toBe('hostname old\n')
})

test('a text with bytes that were never written is never used', async () => {
  for (const look of [requested, over]) {
    const { pull, read } = await router(oddly('hostname n\0\0\0\0\0\0\0\0'))
    await expect(pull(look)).rejects.toMatchObject(otherSum)
    expect(await read(startup)).toBe('hostname old\n')
  }
})

test('a file that was replaced after the router stored its configuration stays until the router stores again', async () => {
  const { pull, read } = await router(nvramFile({ kb: 8, startup: 'hostname new\n' }), { earlier: 60 })
  expect(await pull(over)).toEqual([])
  expect(await read(startup)).toBe('hostname old\n')
  expect(await pull(requested)).toEqual([])
  expect(await read(startup)).toBe('hostname old\n')
  await pull(changed)
  expect(await read(startup)).toBe('hostname new\n')
})

test('different line ends alone are not a change', async () => {
  const { directory, pull, read } = await router(Buffer.alloc(0), { text: 'hostname R1\r\nend\r\n' })
  await writeFile(join(directory, nvramName(id)), nvramFile({ kb: 8, startup: 'hostname R1\nend\n' }))
  await pull(requested)
  expect(await read(startup)).toBe('hostname R1\r\nend\r\n')
})

test('an NVRAM that cannot be read is not replaced by an empty one', async () => {
  const directory = await freshDirectory()
  await writeFile(join(directory, nvramName(id)), Buffer.alloc((1 << 20) + 1))
  const tooLong = { status: 409, message: 'nvram_00007 has 1048577 bytes, expected at most 1048576' }
  await expect(pushConfigs(directory, id, 8)).rejects.toMatchObject(tooLong)
  await expect(pullConfigs(directory, id, requested)).rejects.toMatchObject(tooLong)
  expect(await readdir(directory)).toEqual([nvramName(id)])
})
