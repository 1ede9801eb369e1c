import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const root = join(import.meta.dirname, '../..')
const tests = join(root, 'test/')

/** What a file below `test/` has in it that starts processes: programs, services with their keepers, and workerd. */
const starting =
  /from 'node:child_process'|from 'miniflare'|from '[^']*\/(?:client\/launch|programs\/start|service\/agent)\.ts'|\brequire(?:Program|Gcc|Libvirt|Guest|Devices|FastPath)\(/

/**
 * The test files that start no process, by what they import below `test/`: what `npm run test:unit` runs. `except` are patterns of
 * others.
 */
export function unitFiles(except: readonly string[]): string[] {
  const isOut = new Set(globSync([...except], { cwd: root }))
  return globSync('test/{src,node,browser}/**/*.test.ts', { cwd: root }).filter(
    (file) => !isOut.has(file) && !starts(join(root, file), new Set()),
  )
}

function starts(file: string, seen: Set<string>): boolean {
  if (seen.has(file)) return false
  seen.add(file)
  const text = readFileSync(file, 'utf8')
  if (starting.test(text)) return true
  const imported = [...text.matchAll(/from '(\.[^']+)'/g)].map(([, path = '']) => join(dirname(file), path))
  return imported.some((path) => path.startsWith(tests) && starts(path, seen))
}
