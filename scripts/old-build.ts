import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliCompressSync, constants } from 'node:zlib'

/**
 * Keeps the built program of an earlier commit for the tests of upgrades: `node scripts/old-build.ts COMMIT FILE`. FILE becomes
 * the JSON of file names and texts, compressed with Brotli. The page of the reference is not in it: it is large, and of no use.
 */
const [commit, file] = process.argv.slice(2)
if (commit === undefined || file === undefined) throw new Error('usage: old-build.ts COMMIT FILE')

const root = join(import.meta.dirname, '..')
const place = mkdtempSync(join(tmpdir(), 'patchbay-old-'))
const tree = join(place, 'tree')
try {
  execFileSync('git', ['worktree', 'add', '--detach', tree, commit], { cwd: root, stdio: 'inherit' })
  symlinkSync(join(root, 'node_modules'), join(tree, 'node_modules'))
  execFileSync('npm', ['run', 'build'], { cwd: tree, stdio: 'inherit' })
  const dist = join(tree, 'dist')
  const names = readdirSync(dist).filter((name) => name.endsWith('.js') && name !== 'rapidoc-min.js')
  const files = Object.fromEntries(names.sort().map((name) => [name, readFileSync(join(dist, name), 'utf8')]))
  const text = JSON.stringify(files)
  const params = {
    [constants.BROTLI_PARAM_QUALITY]: 11,
    [constants.BROTLI_PARAM_LGWIN]: 24,
    [constants.BROTLI_PARAM_SIZE_HINT]: text.length,
  }
  writeFileSync(file, brotliCompressSync(text, { params }))
} finally {
  execFileSync('git', ['worktree', 'remove', '--force', tree], { cwd: root })
  rmSync(place, { recursive: true, force: true })
}
