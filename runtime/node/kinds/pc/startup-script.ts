import { readFileSync, statSync } from 'node:fs'
import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** VPCS loads a file of this name from its working directory by itself. */
export const scriptName = 'startup.vpc'
/** Longer ones are not shown; the file can still be read as a file of the project. */
const longestShown = 1 << 20

/** The script of a pc; null when there is none. */
export function readScript(directory: string): string | null {
  const file = join(directory, scriptName)
  const stats = statSync(file, { throwIfNoEntry: false })
  return stats?.isFile() === true && stats.size <= longestShown ? readFileSync(file, 'utf8') : null
}

/** Writes the script of a pc of this name; `%h` stands for the name. */
export async function writeScript(directory: string, text: string, name: string): Promise<void> {
  await replaceFile(
    join(directory, scriptName),
    text.replaceAll('%h', () => name),
  )
}

/** Follows a change of the name: only lines `set pcname {old name}` are edited. */
export async function renameInScript(directory: string, before: string, after: string): Promise<void> {
  const file = join(directory, scriptName)
  const text = await readFile(file, 'utf8').catch(() => undefined)
  const renamed = text?.replace(
    /^([ \t]*set[ \t]+pcname[ \t]+)(.*?)([ \t\r]*)$/gm,
    (line, start: string, name: string, end: string) => (name === before ? start + after + end : line),
  )
  if (renamed !== undefined && renamed !== text) await replaceFile(file, renamed)
}

async function replaceFile(file: string, text: string): Promise<void> {
  const temporary = `${file}.writing`
  try {
    await writeFile(temporary, text, { mode: 0o600, flush: true })
    await rename(temporary, file)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}
