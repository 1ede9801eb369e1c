import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { endsWithUs } from '../support/ends-with-us.ts'

const root = join(import.meta.dirname, '../..')

/**
 * The directory of another build: `name` is such a directory, or a revision of this repository, which is then built with the packages
 * of this tree. Throws when it is neither.
 */
export function buildOf(name: string): string {
  const directory = resolve(name)
  if (existsSync(join(directory, 'patchbay.js'))) return directory
  const commit = commitOf(name)
  if (commit === undefined) throw new Error(`${name} is neither a directory with a build (patchbay.js) nor a revision`)
  const tree = mkdtempSync(join(tmpdir(), 'patchbay-bench-'))
  endsWithUs(tree)
  const archive = execFileSync('git', ['archive', commit], { cwd: root, maxBuffer: 1 << 30 })
  execFileSync('tar', ['-x', '-C', tree], { input: archive })
  symlinkSync(join(root, 'node_modules'), join(tree, 'node_modules'))
  execFileSync('npm', ['run', 'build', '--silent'], { cwd: tree, stdio: ['ignore', 'ignore', 'inherit'] })
  return join(tree, 'dist')
}

function commitOf(name: string): string | undefined {
  try {
    const args = ['rev-parse', '--verify', '--quiet', '--end-of-options', `${name}^{commit}`]
    return execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  } catch {
    return undefined
  }
}
