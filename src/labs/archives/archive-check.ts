import { ApiError, badRequest } from '../../lib/errors/api-error.ts'
import { quotedPath } from '../../lib/text/escape.ts'

const maxMembers = 100_000
const maxNameBytes = 1024
/** Above `freeBytes` the content may have at most `maxRatio` times the size of the archive: deflate reaches a ratio of 1,000. */
const freeBytes = 2 ** 30
const maxRatio = 100
const maxBytes = 2 ** 40

/** A member in the directory of a zip archive. */
export interface MemberFacts {
  readonly name: string
  readonly isEncrypted: boolean
  /** APPNOTE.TXT 4.4.5. */
  readonly method: number
  /** External file attributes; the upper half is the mode of Unix. */
  readonly attributes: number
  readonly compressedSize: number
  readonly size: number
}

/**
 * The regular files of an archive of `bytes` bytes, by name. 400 for a member that is unreadable, inconsistent or not a file; 413 for an
 * archive whose content is too large.
 */
export async function checkedMembers<T>(
  entries: AsyncIterable<T>,
  factsOf: (entry: T) => MemberFacts,
  bytes: number,
): Promise<Map<string, T>> {
  const members = new Map<string, T>()
  let [stored, total, count] = [0, 0, 0]
  for await (const entry of entries) {
    const facts = factsOf(entry)
    requireReadable(facts)
    count += 1
    if (count > maxMembers) throw tooLarge(`more than ${maxMembers} files`)
    stored += facts.compressedSize
    total += facts.size
    // Members that share their bytes: a zip bomb.
    if (stored > bytes)
      throw badRequest('The files in the archive are larger than the archive itself: it is damaged or forged')
    if (total > maxBytes || (total > freeBytes && total > bytes * maxRatio))
      throw tooLarge(`files of more than ${total} bytes in ${bytes}`)
    const { name } = facts
    if (name.endsWith('/')) continue
    if (members.has(name)) throw badRequest(`The archive contains ${quotedPath(name)} twice`)
    members.set(name, entry)
  }
  return members
}

/** Types of files, in the upper half of the attributes (inode(7), `S_IFMT`). */
const typeMask = 0o170000
const types = new Set([0, 0o100000, 0o040000])
export const storedMethod = 0
export const zstdMethod = 93
const methods = [storedMethod, 8, zstdMethod]

function requireReadable({ name, isEncrypted, method, attributes }: MemberFacts): void {
  const why = (text: string) => badRequest(`The file ${quotedPath(name)} of the archive ${text}`)
  if (new TextEncoder().encode(name).byteLength > maxNameBytes)
    throw why(`has a name of more than ${maxNameBytes} bytes`)
  if (isEncrypted) throw why('is encrypted: create the archive without a password')
  if (!methods.includes(method))
    throw why(`uses compression method ${method}: create the archive with compression zstd, zip or none`)
  if (!types.has((attributes >>> 16) & typeMask)) throw why('is a link or a device, expected a file')
}

/** A member is not what the archive says. */
export const damaged = (name: string, why = 'its CRC-32 is wrong'): ApiError =>
  badRequest(`The file ${quotedPath(name)} of the archive is damaged: ${why}`)

/** Turns the error of a library about an archive into a 400. */
export function noZip(cause: unknown): never {
  if (cause instanceof ApiError) throw cause
  throw badRequest(
    `The body is not a zip archive, or it is incomplete, damaged or unsafe: ${(cause as Error).message}`,
    {
      cause: cause as Error,
    },
  )
}

const tooLarge = (what: string): ApiError => new ApiError(413, `The archive would become ${what}`)
