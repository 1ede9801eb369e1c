import { lstat, readdir, readFile } from 'node:fs/promises'
import { basename, dirname, join, sep } from 'node:path'
import { type Static, Type } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'

import { removeDurable, writeDurable } from '../../../engine/storage/durable-file.ts'

import type { AttachedDisk } from './machine.ts'

const maxSettingsBytes = 8 << 20

const Name = Type.String({ minLength: 1, maxLength: 255 })
const SlotNumber = Type.Union([Type.String({ pattern: '^\\d{1,3}$' }), Type.Integer({ minimum: 0, maximum: 999 })])
/** The disks of a closed clone, by the names of their files in `Snapshots`. GNS3 writes the same file. */
const DiskTable = Type.Array(Type.Object({ hdd: Name, controller: Name, port: SlotNumber, device: SlotNumber }), {
  maxItems: 512,
})

const tableOf = (settingsFile: string) => join(dirname(settingsFile), 'hdd_info.json')
const snapshotsOf = (settingsFile: string) => join(dirname(settingsFile), 'Snapshots')

/** Whether a file is an overlay of the clone. */
export const isOverlay = (settingsFile: string, file: string): boolean => dirname(file) === snapshotsOf(settingsFile)

/** Whether a file is below a directory. */
export const isWithin = (directory: string, file: string): boolean => file.startsWith(directory + sep)

export async function writeDiskTable(settingsFile: string, disks: readonly AttachedDisk[]): Promise<void> {
  const row = ({ controller, port, device, file }: AttachedDisk) => ({
    hdd: basename(file),
    controller,
    port: String(port),
    device: String(device),
  })
  const table: Static<typeof DiskTable> = disks.map(row)
  await writeDurable(tableOf(settingsFile), `${JSON.stringify(table, null, 4)}\n`)
}

/** The disks that were detached when the clone was closed, if their files exist. */
export async function readDiskTable(settingsFile: string): Promise<AttachedDisk[]> {
  const table = await readFile(tableOf(settingsFile), 'utf8').then(parseTable, () => [])
  const disks: AttachedDisk[] = []
  for (const { hdd, controller, port, device } of table) {
    const file = join(snapshotsOf(settingsFile), basename(hdd))
    if (await isFile(file)) disks.push({ controller, port: Number(port), device: Number(device), file })
  }
  return disks
}

export const removeDiskTable = (settingsFile: string): Promise<void> => removeDurable(tableOf(settingsFile))

function parseTable(text: string): Static<typeof DiskTable> {
  try {
    const value: unknown = JSON.parse(text)
    return Check(DiskTable, value) ? value : []
  } catch {
    return []
  }
}

/** The settings file of a VM in a directory or its subdirectories. */
export async function findSettings(directory: string, uuid: string): Promise<string | undefined> {
  const within = await readdir(directory, { withFileTypes: true }).catch(() => [])
  const directories = [
    directory,
    ...within.filter((each) => each.isDirectory()).map(({ name }) => join(directory, name)),
  ]
  for (const parent of directories) {
    const names = await readdir(parent).catch(() => [])
    for (const name of names.filter((each) => each.endsWith('.vbox'))) {
      const file = join(parent, name)
      if ((await isFile(file, maxSettingsBytes)) && (await readFile(file, 'utf8')).includes(`uuid="{${uuid}}"`))
        return file
    }
  }
  return undefined
}

async function isFile(path: string, maxBytes = Number.POSITIVE_INFINITY): Promise<boolean> {
  const found = await lstat(path).catch(() => undefined)
  return found?.isFile() === true && found.size <= maxBytes
}
