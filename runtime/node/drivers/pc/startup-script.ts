import { readFileSync, statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceOwn } from '../../engine/storage/own-files.ts'
import { pcName } from '../../keeper/simulator/commands/pc-name.ts'

/** VPCS runs a file of this name in its working directory. */
export const scriptName = 'startup.vpc'
/** Longer scripts are not shown; clients can read them as files of the project. */
const maxShownBytes = 1 << 20
/** The lengths of names in versions of VPCS. */
export const vpcsNameBytes = [6, 12] as const

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

/** A name as VPCS takes it: one word, at most `bytes` bytes of UTF-8. */
export function vpcsName(name: string, bytes: number): string {
  const word = pcName(name).replaceAll(' ', '')
  return word.slice(0, new TextEncoder().encodeInto(word, new Uint8Array(bytes)).read)
}

/** The name of the file that VPCS runs at its start, see `bootScript`. */
export const bootScriptName = (nodeId: string): string => `vpcs-${nodeId}.vpc`

/** What VPCS runs at its start: the prompt is the name of the pc, unless its own script says another one. */
export function bootScript(name: string, nameBytes: number, hasScript: boolean): string {
  const shown = vpcsName(name, nameBytes)
  return `${shown === '' ? '' : `set pcname ${shown}\n`}${hasScript ? `load ${scriptName}\n` : ''}`
}

/** Changes the lines `set pcname {before}` after a rename of the pc; `before` also as a pc shows and saves it. */
export async function renameInScript(directory: string, before: string, after: string): Promise<void> {
  const forms = [before, pcName(before), ...vpcsNameBytes.map((bytes) => vpcsName(before, bytes))]
  const text = await readFile(join(directory, scriptName), 'utf8').catch(() => undefined)
  const renamed = text?.replace(
    /^([ \t]*set[ \t]+pcname[ \t]+)(.*?)([ \t\r]*)$/gm,
    (line, start: string, name: string, end: string) => (forms.includes(name) ? start + after + end : line),
  )
  if (renamed !== undefined && renamed !== text) await replaceOwn(directory, scriptName, renamed)
}
