import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { torture } from './torture.ts'

// `npm run torture -- MINUTES`: one when nothing is said; --seed NUMBER makes the choices of an earlier run again. Its files are
// in --directory, not in another TMPDIR: the leases of ports are in that one, and all tests that run at a time must share them.
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seed: { type: 'string' }, build: { type: 'string' }, directory: { type: 'string' } },
})
const minutes = Number(positionals[0] ?? 1)
const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 32) : Number(values.seed)
const build = resolve(values.build ?? join(import.meta.dirname, '../../dist'))
if (!(minutes > 0 && minutes <= 24 * 60)) fail(`expected minutes, more than 0 and at most 1440, got ${positionals[0]}`)
if (!Number.isInteger(seed) || seed < 0) fail(`--seed: expected a number, got ${values.seed}`)
if (!existsSync(join(build, 'patchbay.js'))) fail(`There is no build in ${build}: patchbay.js is not there`)

const directory = await mkdtemp(join(values.directory ?? tmpdir(), 'patchbay-torture-'))
const losses = await torture({ minutes, seed, build, directory })
if (losses === 0) await rm(directory, { recursive: true, force: true })
else
  console.log(
    `The log of the service and a list of what happened are in ${directory}; the same choices again: --seed ${seed}`,
  )
process.exit(losses === 0 ? 0 : 1)

function fail(message: string): never {
  console.error(message)
  process.exit(2)
}
