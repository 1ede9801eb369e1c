import { chmod, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { TokenFile } from '../../../../runtime/node/service/auth/token-file.ts'
import type { TokenRecord } from '../../../../src/model/access/access-token.ts'
import { watchSyncs } from '../../../support/power-cut.ts'
import { openRecords } from '../../../support/service-records.ts'

const record = (token_id: string, more: Partial<TokenRecord> = {}): TokenRecord => ({
  ...{ token_id, name: 'ci', role: 'read', purpose: 'user', hash: 'a'.repeat(64), last_characters: 'aaaa' },
  ...{ created_at: '2026-01-01T00:00:00.000Z', expires_at: null },
  ...more,
})

async function open(data?: string, minFreeMb = 0) {
  const { records, data: directory, said } = await openRecords({ ...(data !== undefined && { data }), minFreeMb })
  return { file: await TokenFile.open(records), directory, said, path: join(directory, 'tokens.json') }
}

test('tokens are stored over a restart, and only their user can read the file', async () => {
  const { file, directory, path } = await open()
  // Together: each change has those before it.
  await Promise.all(['a', 'b', 'c'].map((id) => file.put(record(id))))
  await Promise.all([file.put(record('a', { name: 'changed' })), file.remove('b'), file.remove('none')])
  const again = await open(directory)
  expect(await again.file.list()).toEqual([record('a', { name: 'changed' }), record('c')])
  expect([await again.file.get('c'), await again.file.get('b')]).toEqual([record('c'), undefined])
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  await chmod(path, 0o644)
  await open(directory)
  expect((await stat(path)).mode & 0o777).toBe(0o600)
})

test('a damaged file does not make a revoked token valid', async () => {
  const { file, directory, path } = await open()
  await file.put(record('a'))
  await file.put(record('b'))
  await file.remove('b')
  await writeFile(path, '{')
  const { file: again, said } = await open(directory)
  expect([await again.list(), said.length]).toEqual([[], 1])
  expect(await readFile(`${path}.damaged`, 'utf8')).toBe('{')
  await again.put(record('c'))
  await again.put(record('d'))
  await writeFile(path, '{"version": 1, "tokens": [{}]}')
  expect(await (await open(directory)).file.list()).toEqual([record('c')])
})

test('a revoked token is in no file after a power cut', async () => {
  const { file, directory } = await open()
  await file.put(record('a'))
  await file.put(record('b'))
  const afterPowerCut = await watchSyncs()
  await file.remove('b')
  expect(afterPowerCut(directory)).toEqual(['tokens.json'])
})

test('on a full disk no token is created, and stored tokens can still be revoked', async () => {
  const { file, directory } = await open()
  await file.put(record('a'))
  const full = await open(directory, 1e9)
  await expect(full.file.put(record('b'))).rejects.toMatchObject({ status: 507 })
  await full.file.remove('a')
  expect(await full.file.list()).toEqual([])
})
