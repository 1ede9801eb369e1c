import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import type { Hypervisor } from '../../../../runtime/node/drivers/dynamips/hypervisor.ts'
import { reach } from '../../../../runtime/node/drivers/dynamips/ready.ts'
import {
  cardNames,
  chassisNames,
  completed,
  type DynamipsPlatform,
  defaultRam,
  firstPortOfWic,
  isFixed,
  slotFields,
  wicFields,
  wicNames,
} from '../../../../src/model/kinds/dynamips-hardware.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { copyOfDynamips } from '../../../support/dynamips.ts'
import { freePort } from '../../../support/ports.ts'
import { requireProgram } from '../../../support/require.ts'
import { testWith } from '../../../support/test-with.ts'

const needsDynamips = requireProgram('dynamips')
const bound = { ms: 5000 }

/** A dynamips as it is started for a router. */
async function running(): Promise<{ client: Hypervisor; end: () => void; directory: string }> {
  const [directory, port] = [await freshDirectory(), freePort()]
  const args = ['-N1', '-l', 'dynamips.log', '-H', `127.0.0.1:${port}`]
  const child = spawn((await copyOfDynamips(directory)) ?? '', args, { cwd: directory, stdio: 'ignore' })
  onTestFinished(() => void child.kill('SIGKILL'))
  const client = await reach({ directory, port, ms: 5000, signal: new AbortController().signal })
  onTestFinished(() => client.close())
  return { client, end: () => void child.kill('SIGTERM'), directory }
}

testWith(needsDynamips)('dynamips takes values as they were given, and a long one too', async () => {
  const { client } = await running()
  const values = ['a b', "it's", '#1', '! 2', '\\', 'é', 'x'.repeat(2000)]
  const { lines } = await client.run('hypervisor parser_test', [...values, 12], bound)
  const lengthOf = (value: string) => Buffer.byteLength(value)
  expect(lines).toEqual([...values, '12'].map((it, index) => `arg ${index} (len ${lengthOf(it)}): "${it}"`))
})

testWith(needsDynamips)('dynamips refuses with its number', async () => {
  const { client } = await running()
  const refusal = (command: string, ...values: string[]) => client.run(command, values, bound).catch((error) => error)
  expect(await refusal('vm start', 'nobody')).toMatchObject({
    reply: 208,
    message: "vm start: unable to find object 'nobody'",
  })
  expect(await refusal('vm foo', 'nobody')).toMatchObject({ reply: 202 })
  expect(await refusal('bar foo')).toMatchObject({ reply: 201 })
  expect(await refusal('vm start')).toMatchObject({ reply: 203 })
})

testWith(needsDynamips)('dynamips has every chassis, and takes every card of it', async () => {
  const { client } = await running()
  const run = (command: string, ...values: (string | number)[]) => client.run(command, values, bound)
  const empty = { slot0: '', slot1: '', slot2: '', slot3: '', slot4: '', slot5: '', slot6: '' } as const
  let id = 0
  let cards = 0
  for (const platform of Object.keys(defaultRam) as DynamipsPlatform[]) {
    for (const chassis of chassisNames) {
      const plain = completed({ platform, chassis, ...empty, wic0: '', wic1: '', wic2: '' })
      if (typeof plain === 'string' || plain.chassis !== chassis) continue
      const vm = `vm${++id}`
      await run('vm create', vm, id, platform)
      if (chassis !== '') await run(`${platform} set_chassis`, vm, chassis)
      await run(`${platform} set_mac_addr`, vm, 'ca00.1234.0000')
      const fixed = (await run('vm slot_bindings', vm)).lines
      expect([platform, chassis, fixed.length === 1]).toEqual([platform, chassis, isFixed(plain)])
      const takes = (change: object) => typeof completed({ ...plain, ...change }) !== 'string'
      for (const [slot, field] of slotFields.entries()) {
        if (slot === 0 && isFixed(plain)) continue
        for (const card of cardNames.filter((card) => takes({ [field]: card }))) {
          await run('vm slot_add_binding', vm, slot, 0, card)
          await run('vm slot_remove_binding', vm, slot, 0)
          cards++
        }
      }
      for (const [index, field] of wicFields.entries()) {
        for (const wic of wicNames.filter((wic) => takes({ [field]: wic }))) {
          await run('vm slot_add_binding', vm, 0, firstPortOfWic(index), wic)
          await run('vm slot_remove_binding', vm, 0, firstPortOfWic(index))
          cards++
        }
      }
    }
  }
  expect([id, cards]).toEqual([23, 280])
})

testWith(needsDynamips)('dynamips closes the connection when it ends', async () => {
  const { client, end } = await running()
  end()
  await client.closed
  await expect(client.run('hypervisor version', [], bound)).rejects.toMatchObject({ code: 'closed' })
})

testWith(needsDynamips)(
  'dynamips that cannot have its port says so where its complaints are read, and ends',
  async () => {
    const { directory } = await running()
    const [, port = ''] = /TCP port = (\d+)/.exec(await readFile(join(directory, 'dynamips.log'), 'utf8')) ?? []
    const cwd = await freshDirectory()
    const child = spawn(join(directory, 'dynamips'), ['-N1', '-H', `127.0.0.1:${port}`], {
      cwd,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let said = ''
    child.stderr?.on('data', (bytes) => {
      said += bytes
    })
    await once(child, 'close')
    expect(said).toBe('Hypervisor: unable to create TCP sockets.\n')
  },
)
