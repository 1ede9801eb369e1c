import { lstat, readdir, readFile } from 'node:fs/promises'
import { basename, dirname, join, sep } from 'node:path'
import { type Static, Type } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'

import { removeDurable, writeDurable } from '../../../storage/durable-file.ts'

import type { AttachedDisk } from './machine.ts'

const maxSettingsBytes = 8 << 20

/** Where the disks of a closed clone were, by the name of their files in `Snapshots`; the program before us wrote it, too. */
const DiskTable = Type.Array(
  Type.Object({
    hdd: Type.String({ minLength: 1, maxLength: 255 }),
    controller: Type.String({ minLength: 1, maxLength: 255 }),
    port: Type.Union([Type.String({ pattern: '^\\d{1,3}$' }), Type.Integer({ minimum: 0, maximum: 999 })]),
    device: Type.Union([Type.String({ pattern: '^\\d{1,3}$' }), Type.Integer({ minimum: 0, maximum: 999 })]),
  }),
  { maxItems: 512 },
)

const tableOf = (settingsFile: string) => join(dirname(settingsFile), 'hdd_info.json')
const snapshotsOf = (settingsFile: string) => join(dirname(settingsFile), 'Snapshots')

/** Whether a file is among those of the clone that are overlays. */
export const isOverlay = (settingsFile: string, file: string): boolean => dirname(file) === snapshotsOf(settingsFile)

/** Whether it is below the directory. */
export const isWithin = (directory: string, file: string): boolean => file.startsWith(directory + sep)

export async function writeDiskTable(settingsFile: string, disks: readonly AttachedDisk[]): Promise<void> {
  const table: Static<typeof DiskTable> = disks.map(({ controller, port, device, file }) => ({
    hdd: basename(file),
    controller,
    port: String(port),
    device: String(device),
  }))
  await writeDurable(tableOf(settingsFile), `${JSON.stringify(table, null, 4)}\n`)
}

/** The disks that were taken out of a clone when it was closed; those whose file is not there are left out. */
export async function readDiskTable(settingsFile: string): Promise<AttachedDisk[]> {
  const table = await readFile(tableOf(settingsFile), 'utf8').then(parseTable, () => [])
  const disks: AttachedDisk[] = []
  for (const { hdd, controller, port, device } of table) {
    const file = join(snapshotsOf(settingsFile), basename(hdd))
    if (await isFile(file)) disks.push({ controller, port: Number(port), device: Number(device), file })
  }
  return disks
}

export async function removeDiskTable(settingsFile: string): Promise<void> {
  await removeDurable(tableOf(settingsFile))
}

function parseTable(text: string): Static<typeof DiskTable> {
  try {
    const value: unknown = JSON.parse(text)
    return Check(DiskTable, value) ? value : []
  } catch {
    return []
  }
}

/** The settings of the machine in the directory, or in one that is in it; undefined when they are not there. */
export async function findSettings(directory: string, uuid: string): Promise<string | undefined> {
  const within = await readdir(directory, { withFileTypes: true }).catch(() => [])
  const places = [directory, ...within.filter((each) => each.isDirectory()).map(({ name }) => join(directory, name))]
  for (const place of places) {
    const names = await readdir(place).catch(() => [])
    for (const name of names.filter((each) => each.endsWith('.vbox'))) {
      const file = join(place, name)
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
