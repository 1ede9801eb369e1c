import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { copyFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { DynamipsTimeouts } from '../../runtime/node/drivers/dynamips/timeouts.ts'
import { findProgram } from '../../runtime/node/os/system/find-program.ts'

/** Our programs are at once where they stay; the 10 s in which dynamips looks at them are its own. */
export const shortBounds: Partial<DynamipsTimeouts> = { boot: 300, sample: 1000 }

/** A dynamips without capabilities, which not every host of tests gives away; undefined where none is installed. */
export async function copyOfDynamips(directory: string): Promise<string | undefined> {
  const program = findProgram('dynamips')
  if (program === undefined) return undefined
  const copy = join(directory, 'dynamips')
  await copyFile(program, copy)
  return copy
}

/** One whose guests, which use all they get, are behind the other tests. */
export async function niceDynamips(directory: string): Promise<string | undefined> {
  const [copy, nice] = [await copyOfDynamips(directory), findProgram('nice')]
  if (copy === undefined || nice === undefined) return undefined
  const script = join(directory, 'nice-dynamips')
  // A confined router sees the programs of the system only.
  const program = `program='${copy}'; test -x "$program" || program=dynamips`
  await writeFile(script, `#!/bin/sh\n${program}\nexec ${nice} -n 10 "$program" "$@"\n`, { mode: 0o755 })
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
