import type { XdrReader, XdrWriter } from './xdr.ts'

/** How libvirt addresses a VM (remote_nonnull_domain); it looks at the id. */
export interface Domain {
  readonly name: string
  readonly uuid: string
}

const uuidBytes = 16
/** That of a VM which does not run. */
const noNumber = -1

export function readDomain(reader: XdrReader): Domain {
  const name = reader.string()
  const uuid = uuidText(reader.fixed(uuidBytes))
  reader.int()
  return { name, uuid }
}

export const writeDomain = (writer: XdrWriter, { name, uuid }: Domain): XdrWriter =>
  writer.string(name).fixed(uuidContent(uuid)).int(noNumber)

export const isDomainUuid = (text: string): boolean => /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(text)

/** The sixteen bytes of an id. */
export const uuidContent = (uuid: string): Buffer => Buffer.from(uuid.replaceAll('-', ''), 'hex')

const uuidText = (bytes: Buffer): string => bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
