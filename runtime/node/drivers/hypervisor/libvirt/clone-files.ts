import { existsSync } from 'node:fs'
import { chmod, copyFile, lstat, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type Static, Type } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import { conflict } from '../../../../../src/lib/errors/api-error.ts'
import { findImageTool, inspectImage, mustRun } from '../../../engine/images/qemu-img.ts'
import { readOwn, replaceOwn } from '../../../engine/storage/own-files.ts'
import { type CloneBase, type CloneDisk, type CloneMark, domainNvramName, domainOverlayName } from './clone-xml.ts'
import { domainUuid } from './domain.ts'

const recordName = 'clone.json'
/** Timeout of qemu-img create, ms. */
const overlayMs = 60_000
const maxRecordBytes = 1 << 20

/**
 * The record of a clone in its directory, for when libvirt does not know the clone. Clients can write there, so the record grants
 * nothing that a client could not request.
 */
export type CloneRecord = Static<typeof CloneRecord>
const CloneRecord = Type.Object({
  uuid: Type.String(),
  name: Type.String(),
  source: Type.String({ pattern: domainUuid.source }),
  bases: Type.Array(Type.Object({ device: Type.String(), file: Type.String(), written: Type.String() })),
})

/** All files that a clone can have in its directory. */
export const cloneFiles = (devices: readonly string[]): string[] => [
  ...devices.map(domainOverlayName),
  domainNvramName,
  recordName,
]

export const hasRecord = (directory: string): boolean => existsSync(join(directory, recordName))

export const writeRecord = (directory: string, record: CloneRecord): Promise<void> =>
  replaceOwn(directory, recordName, JSON.stringify(record))

/** 409 when the record is missing, invalid, or of another clone. */
export async function readRecord(directory: string, uuid: string): Promise<CloneRecord> {
  try {
    const record: unknown = JSON.parse(String((await readOwn(directory, recordName, maxRecordBytes))?.bytes))
    if (Check(CloneRecord, record) && record.uuid === uuid) return record
  } catch {}
  throw conflict(`There is no clone ${uuid} in ${directory}`)
}

/** The base files of overlays with the times of their last writes. */
export const basesOf = (disks: readonly CloneDisk[]): Promise<CloneBase[]> =>
  Promise.all(disks.map(async ({ device, file }) => ({ device, file, written: await writtenAt(file) })))

async function writtenAt(file: string): Promise<string> {
  const stats = await stat(file, { bigint: true }).catch(() => undefined)
  return stats === undefined ? '' : String(stats.mtimeNs)
}

/** Creates an empty overlay. `bytes` is the size of the disk, because the service may not be allowed to read the disk. */
export async function createOverlay(
  { device, file, format }: CloneDisk,
  directory: string,
  bytes: bigint,
): Promise<void> {
  const overlay = join(directory, domainOverlayName(device))
  const args = ['create', '-q', '-f', 'qcow2', '-u', '-F', format, '-b', file, overlay, String(bytes)]
  await mustRun(`The overlay of ${file}`, findImageTool(), args, overlayMs)
  // libvirt changes the owner, and the service must read the file later. The directory keeps other users out.
  await chmod(overlay, 0o644)
}

/** Copies the UEFI variables; libvirt creates missing ones at the first start. */
export async function copyVariables(file: string, directory: string): Promise<void> {
  try {
    await copyFile(file, join(directory, domainNvramName))
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    if (file === '' || code === 'ENOENT') return
    throw conflict(`The UEFI variables of the VM (${file}) cannot be read: ${code}`, { cause })
  }
}

/** 409 when the files of a clone were replaced, or a base was written since the creation. */
export async function requireSound({ directory, bases }: CloneMark, name: string): Promise<void> {
  await requireOwn(directory, domainNvramName)
  for (const { device, file, written } of bases) {
    await requireOverlay(directory, device, file)
    const now = await writtenAt(file)
    if (written === '' || now === written) continue
    const what = now === '' ? 'is gone' : 'was written since'
    throw conflict(`"${name}" is a clone on the disk ${file}, which ${what}: create the node again`)
  }
}

async function requireOverlay(directory: string, device: string, base: string): Promise<void> {
  const overlay = domainOverlayName(device)
  if (!(await requireOwn(directory, overlay))) throw conflict(`The disk ${overlay} of the clone is missing`)
  const { backing, references } = await inspectImage(findImageTool(), join(directory, overlay), 'qcow2')
  if (backing === base && references.every((it) => it === base)) return
  throw conflict(`The disk ${overlay} of the clone is not the overlay on ${base} that was created: recreate the node`)
}

/** Whether the file exists; 409 for a link, because libvirt would give its target to the guest. */
async function requireOwn(directory: string, name: string): Promise<boolean> {
  const stats = await lstat(join(directory, name)).catch(() => undefined)
  if (stats === undefined) return false
  if (stats.isFile() && stats.nlink === 1) return true
  throw conflict(`${name} of the clone is not a regular file, or has hard links`)
}
