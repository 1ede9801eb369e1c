import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, copyFile, lstat, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { conflict } from '../../../../../src/errors/api-error.ts'
import { findProgram } from '../../../system/find-program.ts'
import { inspectImage, mustRun } from '../../machine-emulator/qemu-img.ts'
import { type CloneBase, type CloneDisk, type CloneMark, domainNvramName, domainOverlayName } from './clone-xml.ts'
import { isDomainUuid } from './domain.ts'

const recordName = 'clone.json'
/** Bound of making an overlay, ms. */
const overlayMs = 60_000
const maxRecordBytes = 1 << 20

/**
 * What is written of a clone in its directory, for when libvirt does not know it. Clients can write there: nothing of it but what
 * a client could ask for anyway is believed.
 */
export interface CloneRecord {
  readonly uuid: string
  readonly name: string
  readonly source: string
  readonly bases: readonly CloneBase[]
}

/** Every file that a clone can have in its directory. */
export const cloneFiles = (devices: readonly string[]): string[] => [
  ...devices.map(domainOverlayName),
  domainNvramName,
  recordName,
]

export const hasRecord = (directory: string): boolean => existsSync(join(directory, recordName))

export async function writeRecord(directory: string, record: CloneRecord): Promise<void> {
  const temporary = join(directory, `.${recordName}-${randomBytes(6).toString('hex')}`)
  try {
    await writeFile(temporary, JSON.stringify(record), { mode: 0o600, flag: 'wx' })
    await rename(temporary, join(directory, recordName))
  } catch (cause) {
    await rm(temporary, { force: true })
    throw conflict(`The clone cannot be written down: ${(cause as Error).message}`, { cause })
  }
}

/** 409 when there is none, or what is there is no record of that clone. */
export async function readRecord(directory: string, uuid: string): Promise<CloneRecord> {
  const path = join(directory, recordName)
  const unknown = (cause?: unknown) => conflict(`There is no clone ${uuid} in ${directory}`, { cause })
  try {
    const { size } = await lstat(path)
    if (size > maxRecordBytes) throw unknown()
    const record = JSON.parse(await readFile(path, 'utf8')) as CloneRecord
    if (record.uuid !== uuid || !isRecord(record)) throw unknown()
    return record
  } catch (cause) {
    throw unknown(cause)
  }
}

function isRecord({ name, source, bases }: CloneRecord): boolean {
  if (typeof name !== 'string' || typeof source !== 'string' || !isDomainUuid(source)) return false
  return Array.isArray(bases) && bases.every((it) => typeof it?.device === 'string' && typeof it.written === 'string')
}

/** When the files below the overlays were written last. */
export function basesOf(disks: readonly CloneDisk[]): Promise<CloneBase[]> {
  return Promise.all(disks.map(async ({ device, file }) => ({ device, file, written: await writtenAt(file) })))
}

async function writtenAt(file: string): Promise<string> {
  const stats = await stat(file, { bigint: true }).catch(() => undefined)
  return stats === undefined ? '' : String(stats.mtimeNs)
}

/** An empty overlay of a disk; `bytes`: how large the disk is, which we may not be allowed to look at. */
export async function makeOverlay(
  { device, file, format }: CloneDisk,
  directory: string,
  bytes: bigint,
): Promise<void> {
  const overlay = join(directory, domainOverlayName(device))
  const args = ['create', '-q', '-f', 'qcow2', '-u', '-F', format, '-b', file, overlay, String(bytes)]
  await mustRun(`The overlay of ${file}`, imageTool(), args, overlayMs)
  // It is looked at again when a guest had it, and belongs to another user then; nobody else gets to its directory.
  await chmod(overlay, 0o644)
}

/** Copies the variables of a UEFI; those that are not there before the first start are begun anew. */
export async function copyVariables(file: string, directory: string): Promise<void> {
  try {
    await copyFile(file, join(directory, domainNvramName))
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    if (file === '' || code === 'ENOENT') return
    throw conflict(`The UEFI variables of the VM (${file}) cannot be read: ${code}`, { cause })
  }
}

/** 409 when the files of a clone are not what they were made as, or what they are on has changed since. */
export async function requireSound({ directory, bases }: CloneMark, name: string): Promise<void> {
  await requireOwn(directory, domainNvramName)
  for (const { device, file, written } of bases) {
    await requireOverlay(directory, device, file)
    const now = await writtenAt(file)
    if (written === '' || now === written) continue
    const what = now === '' ? 'is gone' : 'was written since'
    throw conflict(`"${name}" is a clone on the disk ${file}, which ${what}: make the node anew`)
  }
}

async function requireOverlay(directory: string, device: string, base: string): Promise<void> {
  const overlay = domainOverlayName(device)
  if (!(await requireOwn(directory, overlay))) throw conflict(`The disk ${overlay} of the clone is gone`)
  const { backing, references } = await inspectImage(imageTool(), join(directory, overlay), 'qcow2')
  if (backing === base && references.every((it) => it === base)) return
  throw conflict(`The disk ${overlay} of the clone is not the overlay on ${base} that was made: make the node anew`)
}

/** Whether the file is there; 409 when it leads to another one, which libvirt would give to the guest. */
async function requireOwn(directory: string, name: string): Promise<boolean> {
  const stats = await lstat(join(directory, name)).catch(() => undefined)
  if (stats === undefined) return false
  if (stats.isFile() && stats.nlink === 1) return true
  throw conflict(`${name} of the clone is not a file of its own`)
}

function imageTool(): string {
  const tool = findProgram('qemu-img')
  if (tool === undefined) throw conflict('qemu-img is not installed; install it (apt-get install qemu-utils)')
  return tool
}
