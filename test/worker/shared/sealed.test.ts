import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from 'smol-toml'
import { expect, test } from 'vitest'
import { settingNames } from '../../../runtime/worker/shared/env.ts'
import { Sealer } from '../../../runtime/worker/shared/sealed.ts'

const root = join(import.meta.dirname, '../../..')
const key = 'a secret of tests that is long enough'

test('a sealed text is opened with the same secret for the same compute only', async () => {
  const sealer = new Sealer(key)
  const sealed = await sealer.seal('geheim', 'One')
  expect(await sealer.seal('geheim', 'One')).not.toBe(sealed)
  expect(sealed).not.toContain(btoa('geheim'))
  expect(await new Sealer(key).open(sealed, 'one')).toBe('geheim')
  await expect(sealer.open(sealed, 'two')).rejects.toThrow()
  await expect(new Sealer(`${key}!`).open(sealed, 'one')).rejects.toThrow()
  const changed = sealed.slice(0, 10) + (sealed[10] === 'A' ? 'B' : 'A') + sealed.slice(11)
  await expect(sealer.open(changed, 'one')).rejects.toThrow()
  await expect(new Sealer('short').seal('geheim', 'one')).rejects.toThrow('32 characters')
})

test('wrangler gives the Worker the version of the package', async () => {
  const settings = parse(await readFile(join(root, 'wrangler.toml'), 'utf8'))
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string }
  expect(settings.define).toEqual({ PATCHBAY_VERSION: `'${version}'` })
})

test('the gateway on this machine has each setting that wrangler.toml names', async () => {
  const [, vars = ''] = (await readFile(join(root, 'wrangler.toml'), 'utf8')).split('# [vars]\n')
  const [named = ''] = vars.split('\n\n')
  const names = [...named.matchAll(/^# (\w+) = /gm)].map(([, name]) => name)
  expect(names.sort()).toEqual([...settingNames].sort())
})
