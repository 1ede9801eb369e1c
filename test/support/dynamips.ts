import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { copyFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { findProgram } from '../../runtime/node/find-program.ts'
import type { DynamipsBounds } from '../../runtime/node/kinds/dynamips/bounds.ts'

/** Our programs are at once where they stay; the 10 s in which dynamips looks at them are its own. */
export const shortBounds: Partial<DynamipsBounds> = { boot: 300, sample: 1000 }

/** A dynamips whose guests, which use all they get, are behind the other tests; undefined where none is installed. */
export async function niceDynamips(directory: string): Promise<string | undefined> {
  const [program, nice] = [findProgram('dynamips'), findProgram('nice')]
  if (program === undefined || nice === undefined) return undefined
  // A copy has no capabilities, which not every host of tests gives away.
  const [copy, script] = [join(directory, 'dynamips'), join(directory, 'nice-dynamips')]
  await copyFile(program, copy)
  await writeFile(script, `#!/bin/sh\nexec ${nice} -n 10 '${copy}' "$@"\n`, { mode: 0o755 })
  return script
}

/** The pids of the dynamips that work in a directory, or below it. */
export function dynamipsIn(directory: string): number[] {
  const isIt = (pid: string) => {
    try {
      const place = readlinkSync(`/proc/${pid}/cwd`)
      return place.startsWith(directory) && readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('\0-N1\0')
    } catch {
      return false
    }
  }
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && isIt(name))
    .map(Number)
}

export const hex = (value: number): string => `0x${value.toString(16)}`
