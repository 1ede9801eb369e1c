import { constants, existsSync } from 'node:fs'
import { open, readdir, rm, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { badRequest, conflict } from '../../../../src/lib/errors/api-error.ts'
import { isUuid } from '../../../../src/model/schema/fields.ts'
import { diskError, withDiskErrors } from '../../engine/storage/disk.ts'
import { makeDirectory } from '../../engine/storage/durable-file.ts'
import { replaceOwn } from '../../engine/storage/own-files.ts'

/** The content of a licence never gets into logs, answers or messages. */

export const licenceName = 'iourc'
/** Limit of a licence file. */
const maxBytes = 64 * 1024
const keyLength = 16
/** Older images fail with longer host names. */
const longestHostname = 15

export interface LicencePaths {
  /** The setting; when it is set, no other place is searched. */
  readonly configured: string | undefined
  readonly home: string
  /** The directory of the node. */
  readonly directory: string
  /** The file that `writeLicence` writes for the node. */
  readonly own: string | undefined
}

/** The licence file for a start; 409 when there is none. */
export async function findLicence({ configured, home, directory, own }: LicencePaths): Promise<string> {
  if (configured !== undefined && configured !== '') {
    if (await isFile(configured, 'iou.iourc_path')) return configured
    throw conflict(`iou.iourc_path: ${basename(configured)} does not exist`)
  }
  for (const path of searched({ home, directory, own })) if (await isFile(path, 'The licence file')) return path
  throw conflict(
    'There is no licence file for IOU: set iourc_content of the node, create ~/.iourc, or set iou.iourc_path',
  )
}

/** The licence file that a start would take; null when there is none. */
export function licencePath(given: LicencePaths): string | null {
  const { configured } = given
  const paths = configured !== undefined && configured !== '' ? [configured] : searched(given)
  return paths.find((path) => existsSync(path)) ?? null
}

const searched = ({ home, directory, own }: Omit<LicencePaths, 'configured'>): readonly string[] => [
  join(home, `.${licenceName}`),
  join(directory, licenceName),
  ...(own === undefined ? [] : [own]),
]

/** Whether a file exists; 409 when the path leads to something else. */
async function isFile(path: string, what: string): Promise<boolean> {
  const stats = await stat(path).catch(() => undefined)
  if (stats === undefined || stats.isFile()) return stats !== undefined
  throw conflict(`${what}: ${basename(path)} is not a file`)
}

/** The directory of the licence file that a client sent for a node. */
export const licenceDirectory = (runDirectory: string, nodeId: string): string => join(runDirectory, `iou-${nodeId}`)

/** Removes the licence files of unwanted nodes. */
export async function removeLicences(runDirectory: string, isUnwanted: (nodeId: string) => boolean): Promise<void> {
  const names: string[] = await readdir(runDirectory).catch(() => [])
  const ids = names.flatMap((name) => /^iou-(.+)$/.exec(name)?.[1] ?? []).filter(isUuid)
  const directories = ids.filter(isUnwanted).map((id) => licenceDirectory(runDirectory, id))
  await Promise.all(
    directories.map((directory) =>
      rm(directory, { recursive: true, force: true }).catch(ignore('the next service tries again')),
    ),
  )
}

/** Writes the licence file of a node, readable for the service only. */
export async function writeLicence(directory: string, content: string): Promise<void> {
  if (Buffer.byteLength(content) > maxBytes)
    throw badRequest(`iourc_content: longer than ${maxBytes} bytes, the limit for a licence file`)
  await withDiskErrors('Writing the licence file', async () => {
    await makeDirectory(directory)
    await replaceOwn(directory, licenceName, content)
  })
}

/** 409 when the form of the file is wrong, or it has no licence for this host. */
export async function requireLicence(path: string, hostname: string): Promise<void> {
  const defect = checkLicence(await contentOf(path), hostname)
  if (defect !== undefined) throw conflict(`The licence file ${basename(path)}: ${defect}`)
}

async function contentOf(path: string): Promise<string> {
  try {
    // O_NONBLOCK: a FIFO may have replaced the file, and must not block the open.
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const { buffer, bytesRead } = await file.read(Buffer.alloc(maxBytes + 1), 0, maxBytes + 1, 0)
    if (bytesRead > maxBytes) throw conflict(`The licence file ${basename(path)} has more than ${maxBytes} bytes`)
    // Latin-1 gives one character for each byte, so bytes outside ASCII are found in any encoding.
    return buffer.toString('latin1', 0, bytesRead)
  } catch (cause) {
    throw diskError(`Reading the licence file ${basename(path)}`, cause)
  }
}

/** Why the text is not a licence file for the host, without values of the text; undefined when it is one. */
export function checkLicence(text: string, hostname: string): string | undefined {
  const sections = new Map<string, Map<string, string[]>>()
  let section: Map<string, string[]> | undefined
  for (const [index, line] of text
    .replace(/^(\ufeff|\xef\xbb\xbf)/, '')
    .split(/\r?\n|\r/)
    .entries()) {
    const words = line.trim()
    if (words === '' || words.startsWith('#') || words.startsWith(';')) continue
    const heading = /^\[([^\]]+)\]$/.exec(words)?.[1]
    if (heading !== undefined) {
      section = sections.get(heading) ?? new Map()
      sections.set(heading, section)
      continue
    }
    const [, key, value] = /^([^=:]+?)\s*[=:]\s*(.*)$/.exec(words) ?? []
    if (key === undefined || value === undefined)
      return `line ${index + 1} cannot be parsed, expected [license] or "hostname = key;"`
    if (section === undefined) return `line ${index + 1} is before any section, expected [license] first`
    section.set(key.toLowerCase(), [...(section.get(key.toLowerCase()) ?? []), value])
  }
  const entries = sections.get('license')
  if (entries === undefined) return 'it has no section [license]'
  const values = entries.get(hostname.toLowerCase())
  const [value] = values ?? []
  if (value === undefined) return `it has no licence for this host, ${hostname}`
  if (values?.length !== 1) return `it has more than one licence for this host, ${hostname}`
  return checkValue(value, `the licence of ${hostname}`)
}

function checkValue(value: string, what: string): string | undefined {
  const semicolon = value.indexOf(';')
  if (semicolon < 0) return `${what} does not end with a semicolon`
  const key = value.slice(0, semicolon).trimEnd()
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are part of ASCII
  if (!/^[\x00-\x7f]*$/.test(value)) return `${what} has characters that are not ASCII`
  if (key.length !== keyLength)
    return `${what} has ${key.length} characters, expected ${keyLength} before the semicolon`
  if (!/^[0-9a-f]*$/i.test(key)) return `${what} has characters that are not hexadecimal digits`
  if (value.slice(semicolon + 1).trim() !== '') return `${what} continues after the semicolon`
  return undefined
}

/** A warning about a host name that older images do not support. */
export function hostnameWarning(hostname: string): string | undefined {
  if (hostname.length <= longestHostname) return undefined
  return `The name of this host, ${hostname}, has more than ${longestHostname} characters; older IOU images fail with that`
}
