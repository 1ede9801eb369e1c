import { randomBytes } from 'node:crypto'
import { constants, existsSync } from 'node:fs'
import { mkdir, open, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { ignore } from '../../../../src/async/ignore.ts'
import { badRequest, conflict } from '../../../../src/errors/api-error.ts'
import { isUuid } from '../../../../src/schema/fields.ts'
import { diskError, withDiskErrors } from '../../storage/disk.ts'

/** Nothing of a licence is ever logged, shown, or part of a message. */

export const licenceName = 'iourc'
/** A list of all hosts of a company is far shorter. */
const maxBytes = 64 * 1024
const keyLength = 16
/** Older images stumble over longer ones. */
const longestHostname = 15

export interface LicencePlaces {
  /** The setting; nothing else is looked for when it is set. */
  readonly configured: string | undefined
  readonly home: string
  /** Of the node. */
  readonly directory: string
  /** What `writeLicence` has made for the node, if anything. */
  readonly own: string | undefined
}

/** The licence file of a router that is about to start; 409 when there is none. */
export async function findLicence({ configured, home, directory, own }: LicencePlaces): Promise<string> {
  if (configured !== undefined && configured !== '') {
    if (await isFile(configured, 'iou.iourc_path')) return configured
    throw conflict(`iou.iourc_path: ${basename(configured)} is not there`)
  }
  for (const place of placesOf({ home, directory, own })) if (await isFile(place, 'The licence file')) return place
  throw conflict('There is no licence file for IOU: give the node iourc_content, make ~/.iourc, or set iou.iourc_path')
}

/** The path of what a start would take now; null when there is nothing. */
export function licencePath(places: LicencePlaces): string | null {
  const { configured } = places
  const wanted = configured !== undefined && configured !== '' ? [configured] : placesOf(places)
  return wanted.find((path) => existsSync(path)) ?? null
}

const placesOf = ({ home, directory, own }: Omit<LicencePlaces, 'configured'>): readonly string[] => [
  join(home, `.${licenceName}`),
  join(directory, licenceName),
  ...(own === undefined ? [] : [own]),
]

/** 409 for what is there and no file. */
async function isFile(path: string, what: string): Promise<boolean> {
  const stats = await stat(path).catch(() => undefined)
  if (stats === undefined || stats.isFile()) return stats !== undefined
  throw conflict(`${what}: ${basename(path)} is not a file`)
}

/** Where the licence file is that a client gave for a node. */
export const licencePlace = (runDirectory: string, nodeId: string): string => join(runDirectory, `iou-${nodeId}`)

/** Removes those of nodes that are not wanted. */
export async function removeLicences(runDirectory: string, isUnwanted: (nodeId: string) => boolean): Promise<void> {
  const names: string[] = await readdir(runDirectory).catch(() => [])
  const ids = names.flatMap((name) => /^iou-(.+)$/.exec(name)?.[1] ?? []).filter(isUuid)
  const places = ids.filter(isUnwanted).map((id) => licencePlace(runDirectory, id))
  await Promise.all(
    places.map((place) => rm(place, { recursive: true, force: true }).catch(ignore('the next service tries again'))),
  )
}

/** Writes the licence file of one node, which only we may read; its path. */
export async function writeLicence(directory: string, content: string): Promise<string> {
  const what = 'Writing the licence file'
  if (Buffer.byteLength(content) > maxBytes) {
    throw badRequest(`iourc_content: longer than the ${maxBytes} bytes that a licence file may have`)
  }
  const path = join(directory, licenceName)
  const temporary = `${path}.${randomBytes(6).toString('hex')}`
  await withDiskErrors(what, async () => {
    await mkdir(directory, { recursive: true, mode: 0o700 })
    try {
      // Never through a link that somebody else made.
      await writeFile(temporary, content, { mode: 0o600, flag: 'wx' })
      await rename(temporary, path)
    } catch (error) {
      await rm(temporary, { force: true })
      throw error
    }
  })
  return path
}

/** 409 when the file has no licence for this host, as far as that can be seen. */
export async function requireLicence(path: string, hostname: string): Promise<void> {
  const defect = checkLicence(await contentOf(path), hostname)
  if (defect !== undefined) throw conflict(`The licence file ${basename(path)}: ${defect}`)
}

async function contentOf(path: string): Promise<string> {
  try {
    // It was a file when it was looked for; what took its place must not block.
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const { buffer, bytesRead } = await file.read(Buffer.alloc(maxBytes + 1), 0, maxBytes + 1, 0)
    if (bytesRead > maxBytes) throw conflict(`The licence file ${basename(path)} has more than ${maxBytes} bytes`)
    // One character a byte: what is not ASCII is found by that, in any encoding.
    return buffer.toString('latin1', 0, bytesRead)
  } catch (cause) {
    throw diskError(`Reading the licence file ${basename(path)}`, cause)
  }
}

/** What hinders the text from being a licence file for that host, without anything of its values; undefined: nothing. */
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
    if (key === undefined || value === undefined) {
      return `line ${index + 1} cannot be parsed, expected [license] or "hostname = key;"`
    }
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
  if (!/^[0-9a-f]*$/i.test(key)) return `${what} has characters that are no hexadecimal digits`
  if (value.slice(semicolon + 1).trim() !== '') return `${what} goes on after the semicolon`
  return undefined
}

/** What to tell of a host whose name is known to make trouble. */
export function hostnameWarning(hostname: string): string | undefined {
  if (hostname.length <= longestHostname) return undefined
  return `The name of this host, ${hostname}, has more than ${longestHostname} characters; older IOU images stumble over that`
}
