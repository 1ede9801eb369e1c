import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '../..')
const run = promisify(execFile)

interface Locked {
  readonly name?: string
  readonly hasInstallScript?: boolean
  readonly engines?: { readonly node?: string }
  readonly optional?: boolean
}

test('nothing that "npm ci" installs wants a newer Node than the package does', async () => {
  const lock = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, Locked>
  }
  const least = versionOf(/>=\s*(\S+)/.exec(lock.packages['']?.engines?.node ?? '')?.[1] ?? '')
  const newer = Object.entries(lock.packages)
    .filter(([, { optional, engines }]) => optional !== true && engines?.node !== undefined)
    .filter(([, { engines }]) => !(engines?.node ?? '').split('||').some((range) => fits(least, range)))
    .map(([name, { engines }]) => `${name} wants ${engines?.node}: see scripts/mend-lock.ts`)
  expect(newer).toEqual([])
})

test('the native parts of ssh2 are not installed', async () => {
  const { packages } = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, Locked>
  }
  expect(packages['node_modules/ssh2']?.hasInstallScript, 'see scripts/mend-lock.ts').toBeUndefined()
  for (const name of ['cpu-features', 'nan']) expect(packages[`node_modules/${name}`]?.name).toBe('safer-buffer')
})

test('npm pack of a checkout names the command that makes the package, and the README says how a checkout starts', async () => {
  const packed = await run('npm', ['pack', '--dry-run'], { cwd: root }).catch((error: { stderr: string }) => error)
  expect(packed.stderr).toContain('npm run package makes the package')
  const { scripts } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>
  }
  // Signals of a supervisor reach the service: no shell stays between.
  expect(scripts.start).toMatch(/^exec /)
})

test('the script of the reference page is the released one', async () => {
  const script = await readFile(join(root, 'runtime/vendor/rapidoc-min.js'))
  const sum = createHash('sha256').update(script).digest('hex')
  expect(await readFile(join(root, 'runtime/vendor/README.md'), 'utf8')).toContain(sum)
})

type Version = readonly [major: number, minor: number, patch: number]

function versionOf(text: string): Version {
  const [major = 0, minor = 0, patch = 0] = text.split('.').map(Number)
  return [major, minor, patch]
}

const compare = (a: Version, b: Version): number => a[0] - b[0] || a[1] - b[1] || a[2] - b[2]

/** Whether a version is in a range without `||`: `>=18`, `^20.19.0`, `>=18 <25`, `*`. */
function fits(version: Version, range: string): boolean {
  return [...range.matchAll(/(>=|<=|[<>^~=])?\s*v?(\d+(?:\.\d+)*)/g)].every(([, sign = '^', digits = '']) => {
    const order = compare(version, versionOf(digits))
    if (sign === '<') return order < 0
    if (sign === '<=') return order <= 0
    if (sign === '>') return order > 0
    return order >= 0 && (sign === '>=' || version[0] === versionOf(digits)[0])
  })
}
