import { existsSync, statSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { basename, isAbsolute } from 'node:path'
import { setNewest } from '../../../../src/lib/async/newest.ts'
import { conflict } from '../../../../src/lib/errors/api-error.ts'
import type { DiskSlot } from '../../../../src/model/kinds/machine-emulator.ts'
import { ConfinedTool, type ImageTool } from '../../engine/images/confined-tool.ts'
import { type ChainRules, requireChain } from '../../engine/images/disk-chain.ts'
import {
  type DiskFacts,
  inspectImage,
  isToolStopped,
  mustRun,
  qemuImgError,
  requireImage,
  runQemuImg,
  type ToolEnd,
} from '../../engine/images/qemu-img.ts'
import { withDiskErrors } from '../../engine/storage/disk.ts'

export { findImageTool, inspectImage } from '../../engine/images/qemu-img.ts'

/** A disk that is ready for the start of a machine. */
export interface PreparedDisk {
  readonly path: string
  /** Always passed to the emulator: a guest could write another header to the beginning of a raw disk. */
  readonly format: string
  /** For the owner, such as errors that could not be repaired. */
  readonly warnings: readonly string[]
  /** Names of the saved states in it. */
  readonly snapshots: readonly string[]
}

/** Name of the overlay of a disk in the directory of its node. */
export const overlayName = (slot: DiskSlot): string => `${slot}_disk.qcow2`

/** Exit codes of `qemu-img check`: qemu-img(1). */
const ends = { fine: 0, failed: 1, corrupt: 2, leaks: 3, cannotBeChecked: 63 } as const

interface Base {
  readonly facts: DiskFacts
  readonly warnings: readonly string[]
}

/** The checked backing images of overlays. Machines do not write to them, so one check is enough. */
const knownBases = new Map<string, Promise<Base>>()
const maxKnown = 1000

export interface Overlay {
  /** Path of the overlay, in the directory of the node. */
  readonly path: string
  /** Absolute path of its backing image, which is never written. */
  readonly base: string
  /** Called before a file that an image refers to is read: throws when the client may not read it. */
  readonly allow?: ChainRules['allow']
}

/** Creates a missing overlay, repairs one with errors, and updates the path of a backing image that has moved. */
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
    // `follow` sets the backing file to the image that was allowed above. The creator of the overlay chose all others.
    const others = facts.references.filter((file) => file !== facts.backing)
    await requireChain(tool, path, { ...facts, backing: undefined, references: others }, { allow })
    snapshots.push(...facts.snapshots)
    // First: a check opens the backing image too.
    await follow(tool, path, facts, base, below.format)
    warnings.push(...(await checkAndRepair(tool, path, 'qcow2')))
  }
  return { path, format: 'qcow2', warnings, snapshots }
}

/** Prepares an image that the machine itself writes to. `format` is the one from before the first write of a guest. */
export async function prepareImage(
  tool: ImageTool,
  path: string,
  { format, allow }: { readonly format?: string | undefined } & Pick<Overlay, 'allow'> = {},
): Promise<PreparedDisk> {
  mustBeAbsolute(path)
  const facts = await inspectImage(tool, path, format)
  await requireChain(tool, path, facts, { allow })
  const warnings = await checkAndRepair(tool, path, facts.format)
  return { path, format: facts.format, warnings, snapshots: facts.snapshots }
}

/** Prepares a disk for the saved state of a machine without other disks. */
export async function prepareStateDisk(tool: ImageTool, path: string, allow?: Overlay['allow']): Promise<PreparedDisk> {
  mustBeAbsolute(path)
  if (!existsSync(path)) {
    await mustRun(`Creating ${basename(path)}`, tool, ['create', '-q', '-f', 'qcow2', path, '1M'])
  }
  return prepareImage(tool, path, { format: 'qcow2', allow })
}

/** Makes a disk larger; 409 with the message of `qemu-img` when that fails, for instance while the disk is in use. */
export async function resizeDisk(
  tool: ImageTool,
  { path, format }: Pick<PreparedDisk, 'path' | 'format'>,
  extendMb: number,
): Promise<void> {
  mustBeAbsolute(path)
  requireImage(path)
  await mustRun(`Extending ${basename(path)}`, tool, ['resize', '-q', '-f', format, path, `+${extendMb}M`])
}

/** Removes a saved state, if there is one of that name. */
export async function deleteSnapshot(
  tool: ImageTool,
  { path, format }: Pick<PreparedDisk, 'path' | 'format'>,
  name: string,
): Promise<void> {
  mustBeAbsolute(path)
  const facts = await inspectImage(tool, path, format)
  if (!facts.snapshots.includes(name)) return
  await requireChain(tool, path, facts)
  await mustRun(`Deleting a saved state of ${basename(path)}`, tool, ['snapshot', '-d', name, path])
}

/**
 * Puts the overlay of the image in place. An overlay fits its own image only, so the overlay of another image is kept under the name
 * of that image until the machine uses it again. Images are compared by name, not by directory.
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
  const kind = `${name} was based on ${basename(backing)}, and was saved as ${basename(kept(backing))}`
  return { warnings: [`${kind}; it is now based on ${now}`] }
}

/** Creates it under a temporary name: a full disk or a crash leaves no partial overlay. */
async function createOverlay(tool: ImageTool, path: string, base: string, baseFormat: string): Promise<void> {
  const temporary = `${path}.creating`
  const what = `Creating ${basename(path)}`
  try {
    await mustRun(what, tool, ['create', '-q', '-f', 'qcow2', '-F', baseFormat, '-b', base, temporary])
    await withDiskErrors(what, async () => {
      await using file = await open(temporary, 'r+')
      await file.sync()
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
  throw conflict(
    `${basename(path)} is empty because it was not completely written; delete it to start again from the image`,
  )
}

/** Only changes the path in the header (`rebase -u`): the content stays as it is. */
async function follow(tool: ImageTool, path: string, facts: DiskFacts, base: string, format: string): Promise<void> {
  // An overlay without a backing file reads as zeros where it is empty; a backing file would change that.
  if (facts.backing === undefined) return
  if (facts.backing === base && facts.backingFormat === format) return
  const args = ['rebase', '-q', '-u', '-f', 'qcow2', '-F', format, '-b', base, path]
  await mustRun(`Moving ${basename(path)} to its image`, tool, args)
}

/** The facts of a backing image; cached until its file is written to or replaced. */
async function lookAt(tool: ImageTool, path: string, allow: Overlay['allow']): Promise<Base> {
  requireImage(path)
  const { ino, size, mtimeMs, ctimeMs } = statSync(path)
  const key = `${path}:${ino}:${size}:${mtimeMs}:${ctimeMs}`
  for (let known = knownBases.get(key); known !== undefined; known = knownBases.get(key)) {
    const base = await known.catch(unlessStopped)
    if (base === undefined) continue
    // Always: the files below may have changed, and another node may be allowed less.
    await requireChain(tool, path, base.facts, { allow })
    return base
  }
  const looking = inspectBase(tool, path, allow)
  setNewest(knownBases, key, looking, maxKnown)
  looking.catch(() => knownBases.delete(key))
  return looking
}

/** Another node was stopped while it looked at the image: that says nothing about the image, which is read again. */
function unlessStopped(error: unknown): undefined {
  if (!isToolStopped(error)) throw error
}

async function inspectBase(tool: ImageTool, path: string, allow: Overlay['allow']): Promise<Base> {
  // Other nodes rely on the result, so no image of this node may forge it.
  if (tool instanceof ConfinedTool) tool.renew()
  const facts = await inspectImage(tool, path)
  // Before the check, which opens the files that the image refers to.
  await requireChain(tool, path, facts, { allow })
  return { facts, warnings: complaints(path, await check(tool, path, facts.format)) }
}

/** Leaked clusters do no harm, and the service does not repair images of users. */
const complaints = (path: string, end: ToolEnd): readonly string[] =>
  end.code === ends.corrupt ? [`The image ${basename(path)} has errors: ${lastLine(end)}. Replace the image`] : []

async function checkAndRepair(tool: ImageTool, path: string, format: string): Promise<readonly string[]> {
  const { code } = await check(tool, path, format)
  const repair = code === ends.leaks ? 'leaks' : code === ends.corrupt ? 'all' : undefined
  if (repair === undefined) return []
  const end = await check(tool, path, format, ['-r', repair])
  return end.code === ends.fine ? [] : [`${basename(path)} has errors that could not be repaired: ${lastLine(end)}`]
}

/** The result of a check; 409 when the check could not run. */
async function check(tool: ImageTool, path: string, format: string, repair: readonly string[] = []): Promise<ToolEnd> {
  const end = await runQemuImg(tool, ['check', '-q', '-f', format, ...repair, path])
  const known: readonly number[] = Object.values(ends)
  if (end.code === ends.failed || !known.includes(end.code)) throw qemuImgError(`Checking ${basename(path)}`, end)
  return end
}

const lastLine = ({ stdout, stderr, code }: ToolEnd): string =>
  `${stdout}\n${stderr}`.trim().split('\n').at(-1)?.trim() || `qemu-img check ended with code ${code}`

/** `qemu-img` takes the part of a relative name before a colon for a protocol. */
function mustBeAbsolute(...paths: readonly string[]): void {
  for (const path of paths) if (!isAbsolute(path)) throw new Error(`${path} is not an absolute path`)
}
