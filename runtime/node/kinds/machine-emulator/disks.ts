import { existsSync, statSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { basename, isAbsolute } from 'node:path'
import { conflict } from '../../../../src/errors/api-error.ts'
import type { DiskSlot } from '../../../../src/kinds/machine-emulator.ts'
import { withDiskErrors } from '../../storage/disk.ts'
import type { ImageTool } from './confined-tool.ts'
import {
  type DiskFacts,
  inspectImage,
  mustRun,
  qemuImgError,
  requireImage,
  runQemuImg,
  type ToolEnd,
} from './qemu-img.ts'

export { type DiskFacts, findImageTool, inspectImage } from './qemu-img.ts'

/** A disk that a machine can be started with. */
export interface PreparedDisk {
  readonly path: string
  /** Always told to the emulator: what a guest writes at the beginning of a raw disk must not decide it. */
  readonly format: string
  /** What the owner should know, such as errors that could not be repaired. */
  readonly warnings: readonly string[]
  /** Names of the states that are saved in it. */
  readonly snapshots: readonly string[]
}

/** Where the overlay of a disk is, in the directory of its node. */
export const overlayName = (slot: DiskSlot): string => `${slot}_disk.qcow2`

/** How a check of an image ends: qemu-img(1). */
const ends = { fine: 0, failed: 1, corrupt: 2, leaks: 3, cannotBeChecked: 63 } as const

interface Base {
  readonly facts: DiskFacts
  readonly warnings: readonly string[]
}

/** The images below overlays that were looked at and checked: they are not written, so once is enough for each. */
const knownBases = new Map<string, Promise<Base>>()
const maxKnown = 1000

export interface Overlay {
  /** Path of the overlay, in the directory of the node. */
  readonly path: string
  /** Absolute path of the image below it, which is never written. */
  readonly base: string
  /** Called before the image below is used: throws when it reads files that the client may not. */
  readonly allow?: ((base: DiskFacts) => Promise<void>) | undefined
}

/** The overlay, made when it is not there, repaired when it has errors, and following an image that has moved. */
export async function prepareOverlay(tool: ImageTool, { path, base, allow }: Overlay): Promise<PreparedDisk> {
  mustBeAbsolute(path, base)
  const { facts: below, warnings: found } = await lookAt(tool, base, allow)
  const warnings = [...found]
  const snapshots: string[] = []
  const chosen = await choose(tool, path, base)
  warnings.push(...chosen.warnings)
  if (!existsSync(path)) await createOverlay(tool, path, base, below.format)
  else {
    const facts = chosen.facts ?? (await readOverlay(tool, path))
    // The image below is about to be the one that was looked at; whatever else it reads was chosen by who made it.
    await allow?.({ ...facts, references: facts.references.filter((file) => file !== facts.backing) })
    snapshots.push(...facts.snapshots)
    // First: a check opens the image below too.
    await follow(tool, path, facts, base, below.format)
    warnings.push(...(await checkAndRepair(tool, path, 'qcow2')))
  }
  return { path, format: 'qcow2', warnings, snapshots }
}

/** An image that the machine itself writes to. `format` is what it was recognised as before a guest ever wrote to it. */
export async function prepareImage(
  tool: ImageTool,
  path: string,
  { format, allow }: { readonly format?: string | undefined } & Pick<Overlay, 'allow'> = {},
): Promise<PreparedDisk> {
  mustBeAbsolute(path)
  const facts = await inspectImage(tool, path, format)
  await allow?.(facts)
  const warnings = await checkAndRepair(tool, path, facts.format)
  return { path, format: facts.format, warnings, snapshots: facts.snapshots }
}

/** A disk that holds nothing but the state of a machine that has no other. */
export async function prepareStateDisk(
  tool: ImageTool,
  path: string,
  { allow }: Pick<Overlay, 'allow'> = {},
): Promise<PreparedDisk> {
  mustBeAbsolute(path)
  if (!existsSync(path)) {
    await mustRun(`Creating ${basename(path)}`, tool, ['create', '-q', '-f', 'qcow2', path, '1M'])
  }
  return prepareImage(tool, path, { format: 'qcow2', allow })
}

/** Makes a disk larger; 409 with the tool's words when it refuses, as for one that is in use. */
export async function resizeDisk(
  tool: ImageTool,
  { path, format }: Pick<PreparedDisk, 'path' | 'format'>,
  extendMb: number,
): Promise<void> {
  mustBeAbsolute(path)
  requireImage(path)
  await mustRun(`Extending ${basename(path)}`, tool, ['resize', '-q', '-f', format, path, `+${extendMb}M`])
}

/** Removes a saved state; one that is not there is fine. */
export async function deleteSnapshot(
  tool: ImageTool,
  { path, format }: Pick<PreparedDisk, 'path' | 'format'>,
  name: string,
): Promise<void> {
  mustBeAbsolute(path)
  const { snapshots } = await inspectImage(tool, path, format)
  if (!snapshots.includes(name)) return
  await mustRun(`Deleting a saved state of ${basename(path)}`, tool, ['snapshot', '-d', name, path])
}

/**
 * Has the overlay that is there be one of the image: what an overlay of another image holds makes no sense above this one. That
 * is kept under the name of its image until it is wanted again. Where the image is does not matter.
 */
async function choose(
  tool: ImageTool,
  path: string,
  base: string,
): Promise<{ warnings: readonly string[]; facts?: DiskFacts }> {
  const kept = (image: string) => path.replace(/\.qcow2$/, `.${basename(image).slice(-180)}.qcow2`)
  const facts = existsSync(path) ? await readOverlay(tool, path) : undefined
  const backing = facts?.backing
  const isAnother = backing !== undefined && basename(backing) !== basename(base)
  if (isAnother) await rename(path, kept(backing))
  if (!existsSync(path) && existsSync(kept(base))) await rename(kept(base), path)
  if (!isAnother) return { warnings: [], ...(facts !== undefined && { facts }) }
  const [name, now] = [basename(path), basename(base)]
  const kind = `${name} was made of ${basename(backing)} and is kept as ${basename(kept(backing))}`
  return { warnings: [`${kind}; it is one of ${now} now`] }
}

/** Under another name until it is complete: a disk that is full, or a crash, leaves no half of an overlay. */
async function createOverlay(tool: ImageTool, path: string, base: string, baseFormat: string): Promise<void> {
  const temporary = `${path}.creating`
  const what = `Creating ${basename(path)}`
  try {
    await mustRun(what, tool, ['create', '-q', '-f', 'qcow2', '-F', baseFormat, '-b', base, temporary])
    await withDiskErrors(what, async () => {
      const file = await open(temporary, 'r+')
      try {
        await file.sync()
      } finally {
        await file.close()
      }
      await rename(temporary, path)
    })
  } catch (error) {
    // Recursively: a client may have sent files to a directory of that name.
    await rm(temporary, { recursive: true, force: true })
    throw error
  }
}

async function readOverlay(tool: ImageTool, path: string): Promise<DiskFacts> {
  if (statSync(path).size > 0) return inspectImage(tool, path, 'qcow2')
  throw conflict(`${basename(path)} is empty: it was not written to its end; delete it to begin again from the image`)
}

/** The tool must not touch what is in the image, so the new place is only noted. */
async function follow(tool: ImageTool, path: string, facts: DiskFacts, base: string, format: string): Promise<void> {
  // It stands by itself, and what it does not have is empty; with an image below it that would be the image's.
  if (facts.backing === undefined) return
  if (facts.backing === base && facts.backingFormat === format) return
  const args = ['rebase', '-q', '-u', '-f', 'qcow2', '-F', format, '-b', base, path]
  await mustRun(`Moving ${basename(path)} to its image`, tool, args)
}

/** What an image below an overlay is. It is asked again whenever its file has been written to or replaced. */
async function lookAt(tool: ImageTool, path: string, allow: Overlay['allow']): Promise<Base> {
  requireImage(path)
  const { ino, size, mtimeMs, ctimeMs } = statSync(path)
  const key = `${path}:${ino}:${size}:${mtimeMs}:${ctimeMs}`
  const known = knownBases.get(key)
  if (known !== undefined) {
    const base = await known
    await allow?.(base.facts)
    return base
  }
  // Other nodes rely on the result, so no image of this node may forge it.
  if (typeof tool !== 'string') tool.renew()
  const facts = await inspectImage(tool, path)
  // Before the check, which opens what the image is made of.
  await allow?.(facts)
  const looking = check(tool, path, facts.format).then((end) => ({ facts, warnings: complaints(path, end) }))
  knownBases.set(key, looking)
  looking.catch(() => knownBases.delete(key))
  const [oldest] = knownBases.keys()
  if (knownBases.size > maxKnown && oldest !== undefined) knownBases.delete(oldest)
  return looking
}

/** Clusters that nobody uses do no harm, and the image is not ours to repair. */
const complaints = (path: string, end: ToolEnd): readonly string[] =>
  end.code === ends.corrupt
    ? [`The image ${basename(path)} has errors: ${lastLine(end)}. Replace it by a good one`]
    : []

async function checkAndRepair(tool: ImageTool, path: string, format: string): Promise<readonly string[]> {
  const { code } = await check(tool, path, format)
  const repair = code === ends.leaks ? 'leaks' : code === ends.corrupt ? 'all' : undefined
  if (repair === undefined) return []
  const end = await check(tool, path, format, ['-r', repair])
  return end.code === ends.fine ? [] : [`${basename(path)} has errors that could not be repaired: ${lastLine(end)}`]
}

/** Ends with what the check found; 409 when it could not be done. */
async function check(tool: ImageTool, path: string, format: string, repair: readonly string[] = []): Promise<ToolEnd> {
  const end = await runQemuImg(tool, ['check', '-q', '-f', format, ...repair, path])
  const known: readonly number[] = Object.values(ends)
  if (end.code === ends.failed || !known.includes(end.code)) throw qemuImgError(`Checking ${basename(path)}`, end)
  return end
}

const lastLine = ({ stdout, stderr, code }: ToolEnd): string =>
  `${stdout}\n${stderr}`.trim().split('\n').at(-1)?.trim() || `qemu-img check ended with code ${code}`

/** The tool takes what is before a colon of a relative name for a protocol. */
function mustBeAbsolute(...paths: readonly string[]): void {
  for (const path of paths) if (!isAbsolute(path)) throw new Error(`${path} is not an absolute path`)
}
