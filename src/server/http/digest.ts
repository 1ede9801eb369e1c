import type { Digest } from '../../host-agent.ts'
import { badRequest } from '../../lib/errors/api-error.ts'

const bytesOf: Readonly<Record<Digest['algorithm'], number>> = { md5: 16, 'sha-256': 32, 'sha-512': 64 }
const isKnown = (name: string): name is Digest['algorithm'] => Object.hasOwn(bytesOf, name)

/**
 * The digests that a client gives for a whole image: `Repr-Digest` (RFC 9530), `?md5sum=` in hexadecimal digits, and the older
 * `Content-MD5` (RFC 1864). That one is of the message, so it is ignored for a part of an image.
 */
export function digestsOf(request: Request, md5sum: string | undefined, isPart: boolean): Digest[] {
  const digests = reprDigests(request.headers.get('repr-digest'))
  if (md5sum !== undefined) digests.push({ algorithm: 'md5', hex: md5sum.toLowerCase() })
  const contentMd5 = request.headers.get('content-md5')
  if (contentMd5 !== null && !isPart) digests.push(digest('md5', contentMd5.trim(), 'Content-MD5'))
  return digests
}

/** `sha-256=:BASE64:, md5=:BASE64:`. An algorithm that cannot be checked is refused (400): the client relies on the check. */
function reprDigests(header: string | null): Digest[] {
  if (header === null) return []
  const members = header.split(',').map((member) => /^\s*([a-z0-9*.-]+)=:([A-Za-z0-9+/=]*):\s*$/.exec(member))
  const digests = members.flatMap((member) => {
    const [, name, value] = member ?? []
    if (name === undefined || value === undefined) throw malformed('Repr-Digest')
    return isKnown(name) ? [digest(name, value, 'Repr-Digest')] : []
  })
  if (digests.length > 0) return digests
  throw badRequest(`Repr-Digest: expected one of ${Object.keys(bytesOf).join(', ')}`)
}

function digest(algorithm: Digest['algorithm'], base64: string, header: string): Digest {
  let bytes: string
  try {
    bytes = atob(base64)
  } catch {
    throw malformed(header)
  }
  if (bytes.length !== bytesOf[algorithm]) {
    throw badRequest(`${header}: ${algorithm} has ${bytesOf[algorithm]} bytes, got ${bytes.length}`)
  }
  return { algorithm, hex: [...bytes].map((byte) => byte.charCodeAt(0).toString(16).padStart(2, '0')).join('') }
}

const malformed = (header: string) =>
  badRequest(`${header}: expected ${header === 'Content-MD5' ? 'base64' : 'a list such as sha-256=:BASE64:'}`)
