import { ApiError, conflict } from '../../../../src/lib/errors/api-error.ts'
import { configText } from '../../engine/nodes/router-configs.ts'
import { decompressLzc } from './lzc.ts'
import {
  compressed,
  damaged,
  emptySections,
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

/** The configurations in the NVRAM of a router; null: none. */
export type RouterConfigs = { readonly startup: string | null; readonly private: string | null }

/** The version that a new NVRAM file gets. */
const newestVersion = 0x0f04
/** Limit of a decompressed configuration. */
const maxPlainBytes = 4 << 20
/** Routers without a private configuration store this text. */
const emptyPrivate = '\nend\n'

/** Reads the configurations in an NVRAM file. 409 for a damaged or incomplete file. `anySum`: the checksum may be wrong. */
export function readConfigs(nvram: Buffer, { anySum = false }: { readonly anySum?: boolean } = {}): RouterConfigs {
  const sections = sectionsOf(nvram)
  if (sections.version !== undefined && !anySum && !isSumRight(nvram)) throw damaged('its checksum is wrong')
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
  if (plainBytes !== undefined && plainBytes > maxPlainBytes)
    throw damaged(`its configuration is longer than ${maxPlainBytes} bytes`)
  const plain = decompressLzc(data, plainBytes ?? maxPlainBytes)
  if (plainBytes !== undefined && plain.length !== plainBytes)
    throw damaged('its compressed configuration is incomplete')
  return plain
}

/**
 * An NVRAM file with new configurations, and warnings for the user. Null keeps a configuration. The files of the router and the
 * second half are kept if the size stays. 409 when the configurations do not fit.
 */
export function writeConfigs(
  before: Buffer | undefined,
  configs: RouterConfigs,
  sizeKb: number,
): { readonly nvram: Buffer; readonly warnings: readonly string[] } {
  if (!isSize(sizeKb)) throw conflict(`nvram: expected a size from 8 to 1024 KB, got ${sizeKb}`)
  const isKept = before?.length === sizeKb * 1024
  const nvram = isKept ? Buffer.from(before) : Buffer.alloc(sizeKb * 1024)
  const { sections, warnings } = isKept ? { sections: sectionsOf(before), warnings: [] } : replaced(before, sizeKb)
  const { version } = sections
  const startup = configs.startup === null ? (sections.startup ?? empty) : stored(configs.startup)
  const own = configs.private === null ? (sections.private ?? empty) : stored(configs.private)
  const padded = version === undefined ? filledUp(startup) : startup
  const bytes = laidOut(padded, own, version ?? newestVersion, halfOf(nvram))
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

/** Pads a text to a multiple of four bytes. The padding behind other texts differs between versions. */
function filledUp(section: Section): Section {
  const missing = -(startupHeaderBytes + section.data.length) & 3
  return { ...section, data: Buffer.concat([section.data, Buffer.alloc(missing, '\n')]) }
}

/** The sections that a new file takes over from a file of another size. */
function replaced(before: Buffer | undefined, sizeKb: number): { sections: Sections; warnings: string[] } {
  if (before === undefined) return { sections: emptySections, warnings: [] }
  const change = `The NVRAM now has ${sizeKb} KB instead of ${Math.ceil(before.length / 1024)}: a new one is created`
  try {
    return { sections: sectionsOf(before), warnings: [`${change}, without the files that the router had stored in it`] }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return {
      sections: emptySections,
      warnings: [`${change}, without the content of the old one, which cannot be read`],
    }
  }
}
