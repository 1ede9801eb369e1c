import type { XdrReader, XdrWriter } from './xdr.ts'

/** The reference to a VM in the protocol (remote_nonnull_domain). libvirt compares the UUID. */
export type Domain = { readonly name: string; readonly uuid: string }

const uuidBytes = 16
/** The number of a VM that does not run. */
const noNumber = -1

export function readDomain(reader: XdrReader): Domain {
  const name = reader.string()
  const uuid = uuidText(reader.fixed(uuidBytes))
  reader.int()
  return { name, uuid }
}

export const writeDomain = (writer: XdrWriter, { name, uuid }: Domain): XdrWriter =>
  writer.string(name).fixed(uuidContent(uuid)).int(noNumber)

export const domainUuid = /^[\da-fA-F]{8}(-[\da-fA-F]{4}){3}-[\da-fA-F]{12}$/

/** The 16 bytes of a UUID. */
export const uuidContent = (uuid: string): Buffer => Buffer.from(uuid.replaceAll('-', ''), 'hex')

const uuidText = (bytes: Buffer): string => bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
