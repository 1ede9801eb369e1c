import { existsSync } from 'node:fs'
import { lstat, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { day0Media } from '../../../../src/labs/nodes/day0.ts'
import { ApiError, conflict, missingImage } from '../../../../src/lib/errors/api-error.ts'
import { type DiskSlot, diskSlots } from '../../../../src/model/kinds/machine-emulator.ts'
import { ConfinedTool, type ImageTool } from '../../engine/images/confined-tool.ts'
import { DirectTool } from '../../engine/images/direct-tool.ts'
import type { ImageLibrary } from '../../engine/images/library.ts'
import { referencesIn, type ToolInfo } from '../../engine/images/qemu-img.ts'
import { requireSpace, withDiskErrors } from '../../engine/storage/disk.ts'
import { letRead } from '../../os/sandbox/box.ts'
import type { Sandbox } from '../../os/sandbox/sandbox.ts'
import {
  deleteSnapshot,
  findImageTool,
  inspectImage,
  type Overlay,
  overlayName,
  type PreparedDisk,
  prepareImage,
  prepareOverlay,
  prepareStateDisk,
} from './disks.ts'
import type { MachineDisk } from './drives.ts'
import { dropMemory } from './memory.ts'
import type { ImageField, MachineKindNode } from './properties.ts'
import { savedStateTag, staleStateHint } from './saved-state.ts'

const kind = 'machine-emulator'
const stateDiskName = 'state.qcow2'
/** Disks in the directory of a node, including the kept overlays of other images. */
const ownDisk = /^(hd[a-d]_disk(\..+)?|state)\.qcow2$/

export interface MachineImagesOptions {
  readonly library: ImageLibrary
  readonly isLocal: () => boolean
  readonly sandbox: Sandbox
  readonly minFreeMb: () => number
}

export interface PreparedDisks {
  readonly disks: readonly MachineDisk[]
  readonly stateDisk: string | undefined
  readonly warnings: readonly string[]
  /** Whether the machine continues from a state that they hold. */
  readonly hasState: boolean
}

/** The path of a CD or of the disk of its configuration in the directory of its machine (`./name`), which may come later: that of a copy does. */
function ownFile({ directory }: MachineKindNode, field: string, name: string): string | undefined {
  const [, own] = /^\.\/([A-Za-z0-9_-][A-Za-z0-9._-]*)$/.exec(name) ?? []
  const isOwn = field === 'cdrom_image' || (field === day0Media.disk.property && name === day0Media.disk.file)
  return own !== undefined && isOwn ? join(directory, own) : undefined
}

/** The images of machines, and the disks that are made of them. */
export class MachineImages {
  readonly #options: MachineImagesOptions

  constructor(options: MachineImagesOptions) {
    this.#options = options
  }

  /** The file of an image, and the name under which it is stored and shown; 409 with `image` when there is none. */
  async named(node: MachineKindNode, field: string, name: string): Promise<{ name: string; file: string }> {
    const own = ownFile(node, field, name)
    if (own !== undefined) return { name, file: own }
    try {
      return await this.#options.library.lookup(kind, name, node.projectPath)
    } catch (error) {
      if (!(error instanceof ApiError) || error.extra.image === undefined) throw error
      throw missingImage(error.message.replace(/^image:/, `${field}:`), error.extra.image)
    }
  }

  /** The `qemu-img` of an emulator, in a cell where programs are confined; `directory` is that of a node. 409. */
  async tool(directory: string, emulator: string, signal?: AbortSignal): Promise<ImageTool> {
    const path = findImageTool(emulator)
    const confinement = await this.#options.sandbox.confinement()
    if (confinement === undefined) return new DirectTool(path, signal)
    const images = this.#options.library.directories(kind)
    return new ConfinedTool({ path, confinement, directory, images, signal })
  }

  /** The directories of images. */
  directories(): string[] {
    return this.#options.library.directories(kind)
  }

  /** Lets a running confined emulator read an image. */
  async showLate(file: string): Promise<void> {
    const found = await this.#options.sandbox.find()
    if (!('protection' in found) || this.#options.isLocal()) return
    await letRead(found.protection.user, file, this.#options.library.directories(kind))
  }

  /** The file of an image field; undefined when the field is empty. */
  async find(node: MachineKindNode, field: ImageField): Promise<string | undefined> {
    const name = node.record.properties[field]
    if (name === '') return undefined
    const { file } = await this.named(node, field, name)
    // A link could lead anywhere.
    if (ownFile(node, field, name) === file && !(await lstat(file).catch(() => undefined))?.isFile())
      throw conflict(`${field}: the directory of the node has no file ${JSON.stringify(name.slice(0, 200))}`)
    return file
  }

  /** Creates and checks the disks of a machine that is about to start. */
  async disks(node: MachineKindNode, toolFor: () => Promise<ImageTool>): Promise<PreparedDisks> {
    const { on_close } = node.record.properties
    const saves = on_close === 'save_vm_state'
    const used = diskSlots.filter((slot) => this.#nameOf(node, slot) !== '')
    const stateDisk = join(node.directory, stateDiskName)
    // Recursively: a client may have sent files to a directory of that name.
    if (!saves) await withDiskErrors(stateDiskName, () => rm(stateDisk, { recursive: true, force: true }))
    if (used.length === 0 && !saves) return { disks: [], stateDisk: undefined, warnings: [], hasState: false }
    const tool = await toolFor()
    using _cell = tool instanceof ConfinedTool ? tool : null
    // First: each file that is shown later takes a new cell.
    for (const slot of used) await this.#shownFile(node, slot, tool)
    await requireSpace(node.directory, this.#options.minFreeMb())
    const prepared: (PreparedDisk & { slot?: DiskSlot })[] = []
    for (const slot of used) prepared.push({ ...(await this.disk(node, slot, tool)), slot })
    if (saves && used.length === 0) prepared.push(await prepareStateDisk(tool, stateDisk, this.#allowOf(node, tool)))
    else await requireNoState(tool, stateDisk)
    const holding = prepared.filter(({ snapshots }) => snapshots.includes(savedStateTag))
    // The disks change now, and an old state does not fit them later.
    if (!saves) for (const disk of holding) await deleteSnapshot(tool, disk, savedStateTag)
    const disks = prepared.flatMap(({ slot, path, format }) =>
      slot === undefined ? [] : [{ slot, path, format, interface: node.record.properties[`${slot}_disk_interface`] }],
    )
    return {
      disks,
      stateDisk: saves && used.length === 0 ? stateDisk : undefined,
      warnings: prepared.flatMap(({ warnings }) => warnings),
      hasState: saves && holding.length > 0,
    }
  }

  /** Creates and checks one disk; 409 when the node has no image for it. */
  async disk(node: MachineKindNode, slot: DiskSlot, tool: ImageTool): Promise<PreparedDisk> {
    const { linked_clone, formats } = node.record.properties
    const file = await this.#shownFile(node, slot, tool)
    const allow = this.#allowOf(node, tool)
    if (linked_clone) return prepareOverlay(tool, { path: join(node.directory, overlayName(slot)), base: file, allow })
    const disk = await prepareImage(tool, file, { format: formats[file], allow })
    node.record.properties = { ...node.record.properties, formats: { ...formats, [file]: disk.format } }
    return disk
  }

  /** The image of a disk, which the tool may then open; 409 when the node has no image for it. */
  async #shownFile(node: MachineKindNode, slot: DiskSlot, tool: ImageTool): Promise<string> {
    const name = this.#nameOf(node, slot)
    if (name === '') throw conflict(`The node has no disk ${slot}: set ${slot}_disk_image first`)
    const { file } = await this.named(node, `${slot}_disk_image`, name)
    if (tool instanceof ConfinedTool) await tool.see(file, !node.record.properties.linked_clone)
    return file
  }

  /** Removes the saved states from the disks in a directory of a node, or in a copy of one. */
  async forgetState(directory: string, emulator: string): Promise<void> {
    await dropMemory(directory)
    const names = (await readdir(directory)).filter((name) => ownDisk.test(name))
    if (names.length === 0) return
    const tool = await this.tool(directory, emulator)
    using _cell = tool instanceof ConfinedTool ? tool : null
    for (const name of names)
      await deleteSnapshot(tool, { path: join(directory, name), format: 'qcow2' }, savedStateTag)
  }

  /** 409 when an emulator has opened images that `disks` would refuse: a client may have replaced them since. */
  async requireOpened(node: MachineKindNode, images: readonly ToolInfo[]): Promise<void> {
    if (this.#options.isLocal()) return
    for (const image of images) {
      for (const file of referencesIn(image)) {
        // An image may contain its own extent.
        if (file !== image.filename && !(await this.#isOwn(node, file))) throw notAmongImages(file)
      }
    }
  }

  /**
   * The check of a file that an image refers to: 409 when it is outside the images, because a guest could read any file of the host.
   * In local mode there is none.
   */
  #allowOf(node: MachineKindNode, tool: ImageTool): Overlay['allow'] {
    if (this.#options.isLocal()) return undefined
    return async (file) => {
      if (!(await this.#isOwn(node, file))) throw notAmongImages(file)
      if (tool instanceof ConfinedTool) await tool.see(file)
    }
  }

  #nameOf(node: MachineKindNode, slot: DiskSlot): string {
    return node.record.properties[`${slot}_disk_image`]
  }

  async #isOwn({ projectPath }: MachineKindNode, file: string): Promise<boolean> {
    return file.startsWith('/') && this.#options.library.isInside(kind, file, projectPath)
  }
}

const notAmongImages = (file: string): Error =>
  conflict(`The image is based on another file, ${file}, which is not among the images; only local mode allows that`)

/** 409 when the state of the machine was saved without a disk: it does not fit a machine with one. */
async function requireNoState(tool: ImageTool, stateDisk: string): Promise<void> {
  if (!existsSync(stateDisk)) return
  const { snapshots } = await inspectImage(tool, stateDisk, 'qcow2')
  if (snapshots.includes(savedStateTag))
    throw conflict(`The machine had no disk when it was stopped; ${staleStateHint}`)
}
