import { badRequest } from '../../../../src/lib/errors/api-error.ts'
import { type LineType, type LinkTypeName, linkTypesOf } from '../../../../src/model/capture.ts'

const words: Readonly<Record<LineType, string>> = { ethernet: 'an Ethernet', serial: 'a serial' }

/** The link type of frames on a line: the requested type, or the default of the line. 400 for a type that the line does not have. */
export function linkTypeOn(line: LineType, wanted: LinkTypeName | undefined, field: string): LinkTypeName {
  const known = linkTypesOf[line]
  if (wanted === undefined) return known[0]
  if (known.includes(wanted)) return wanted
  const expected = known.length === 1 ? known[0] : `one of ${known.join(', ')}`
  throw badRequest(`${field}: ${words[line]} port has no ${wanted} frames, expected ${expected}`)
}
