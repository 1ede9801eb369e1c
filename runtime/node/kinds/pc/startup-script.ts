import { readFileSync, statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceOwn } from '../../storage/own-files.ts'

/** VPCS runs a file of this name in its working directory. */
export const scriptName = 'startup.vpc'
/** Longer scripts are not shown; clients can read them as files of the project. */
const maxShownBytes = 1 << 20

/** The script of a pc; null when there is none. */
export function readScript(directory: string): string | null {
  const file = join(directory, scriptName)
  const stats = statSync(file, { throwIfNoEntry: false })
  return stats?.isFile() === true && stats.size <= maxShownBytes ? readFileSync(file, 'utf8') : null
}

/** Writes the script of a pc; `%h` is replaced by the name of the pc. */
export async function writeScript(directory: string, text: string, name: string): Promise<void> {
  await replaceOwn(
    directory,
    scriptName,
    text.replaceAll('%h', () => name),
  )
}

/** Changes the lines `set pcname {before}` after a rename of the pc. */
export async function renameInScript(directory: string, before: string, after: string): Promise<void> {
  const text = await readFile(join(directory, scriptName), 'utf8').catch(() => undefined)
  const renamed = text?.replace(
    /^([ \t]*set[ \t]+pcname[ \t]+)(.*?)([ \t\r]*)$/gm,
    (line, start: string, name: string, end: string) => (name === before ? start + after + end : line),
  )
  if (renamed !== undefined && renamed !== text) await replaceOwn(directory, scriptName, renamed)
}
