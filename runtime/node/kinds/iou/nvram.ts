import { ApiError, conflict } from '../../../../src/errors/api-error.ts'
import { configText } from './config-text.ts'
import { decompressLzc } from './lzc.ts'
import {
  compressed,
  damaged,
  halfOf,
  isSize,
  isSumRight,
  laidOut,
  raw,
  roomFor,
  type Section,
  type Sections,
  sectionsOf,
  startupHeaderBytes,
  writeSum,
} from './nvram-layout.ts'

/** What a router remembers of its configuration; null: nothing. */
export interface RouterConfigs {
  readonly startup: string | null
  readonly private: string | null
}

/** Written into files of images that are not known. */
const newestVersion = 0x0f04
/** No router has a configuration of this size; what is compressed may claim any. */
const maxPlainBytes = 4 << 20
/** What routers store that have no private configuration. */
const emptyPrivate = '\nend\n'

/**
 * The configurations in the NVRAM file of a router. 409 for what is damaged, or was not written to its end; with `anySum`
 * also what only has another checksum than it should is read.
 */
export function readConfigs(nvram: Buffer, { anySum = false }: { readonly anySum?: boolean } = {}): RouterConfigs {
  const sections = sectionsOf(nvram)
  if (sections.version !== undefined && !anySum && !isSumRight(nvram)) throw damaged('its checksum is another one')
  const own = textOf(sections.private)
  return { startup: textOf(sections.startup), private: own === emptyPrivate ? null : own }
}

function textOf(section: Section | undefined): string | null {
  if (section === undefined || section.data.length === 0) return null
  const text = configText(plainOf(section)).replaceAll('\r\n', '\n')
  return text === '' ? null : text
}

function plainOf({ format, data, plainBytes }: Section): Buffer {
  if (format !== compressed) return data
  if (plainBytes !== undefined && plainBytes > maxPlainBytes) throw damaged('its configuration is unbelievably long')
  const plain = decompressLzc(data, plainBytes ?? maxPlainBytes)
  if (plainBytes !== undefined && plain.length !== plainBytes) throw damaged('its compressed configuration is cut')
  return plain
}

export interface WrittenNvram {
  readonly nvram: Buffer
  /** What the user should know of. */
  readonly warnings: readonly string[]
}

/**
 * The NVRAM file with other configurations; null leaves one as it is. Files of the router and the second half stay, unless
 * the file had another size than the wanted one. 409 when the configurations do not fit.
 */
export function writeConfigs(before: Buffer | undefined, configs: RouterConfigs, sizeKb: number): WrittenNvram {
  if (!isSize(sizeKb)) throw conflict(`nvram: expected a size from 8 to 1024 KB, got ${sizeKb}`)
  const isKept = before?.length === sizeKb * 1024
  const nvram = isKept ? Buffer.from(before) : Buffer.alloc(sizeKb * 1024)
  const { sections, warnings } = isKept ? { sections: sectionsOf(before), warnings: [] } : replaced(before, sizeKb)
  const { version } = sections
  const startup = configs.startup === null ? (sections.startup ?? empty) : stored(configs.startup)
  const own = configs.private === null ? (sections.private ?? empty) : stored(configs.private)
  const bytes =
    version === undefined
      ? laidOut(filledUp(startup), own, newestVersion, halfOf(nvram))
      : laidOut(startup, own, version, halfOf(nvram))
  const room = roomFor(nvram, isKept ? sections.end : 0)
  if (bytes.length > room) {
    throw conflict(
      `The configuration needs ${bytes.length} bytes, and the NVRAM of ${sizeKb} KB has ${room} for it; set a larger nvram`,
    )
  }
  nvram.fill(0, 0, room)
  bytes.copy(nvram)
  writeSum(nvram)
  return { nvram, warnings }
}

const empty: Section = { format: raw, data: Buffer.alloc(0) }
const stored = (text: string): Section => ({ format: raw, data: Buffer.from(text.replaceAll('\r\n', '\n')) })

/** Versions differ in what comes after a text that is no multiple of four, and in nothing after one that is. */
function filledUp(section: Section): Section {
  const missing = -(startupHeaderBytes + section.data.length) & 3
  return { ...section, data: Buffer.concat([section.data, Buffer.alloc(missing, '\n')]) }
}

/** What an empty file takes over from one of another size. */
function replaced(before: Buffer | undefined, sizeKb: number): { sections: Sections; warnings: string[] } {
  const nothing = { version: undefined, startup: undefined, private: undefined, end: 0 }
  if (before === undefined) return { sections: nothing, warnings: [] }
  const change = `The NVRAM has ${sizeKb} KB now, and had ${Math.ceil(before.length / 1024)}: a new one is made`
  try {
    return { sections: sectionsOf(before), warnings: [`${change}, without the files that the router kept in it`] }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return { sections: nothing, warnings: [`${change}, without anything of the old one, which cannot be read`] }
  }
}
