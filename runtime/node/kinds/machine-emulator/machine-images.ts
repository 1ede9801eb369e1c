import { existsSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { ApiError, conflict, missingImage } from '../../../../src/errors/api-error.ts'
import { type DiskSlot, diskSlots } from '../../../../src/kinds/machine-emulator.ts'
import type { ImageLibrary } from '../../images/library.ts'
import { letRead } from '../../sandbox/box.ts'
import type { Sandbox } from '../../sandbox/sandbox.ts'
import { requireSpace, withDiskErrors } from '../../storage/disk.ts'
import { ConfinedTool, type ImageTool } from './confined-tool.ts'
import {
  type DiskFacts,
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
import type { ImageField, MachineKindNode } from './properties.ts'
import { referencesIn, type ToolInfo } from './qemu-img.ts'
import { savedStateTag, staleStateHint } from './saved-state.ts'

const kind = 'machine-emulator'
const stateDiskName = 'state.qcow2'
/** The disks that are made in the directory of a node, those of images that it does not have now among them. */
const ownDisk = /^(hd[a-d]_disk(\..+)?|state)\.qcow2$/
/** Images that read others that read others. */
const deepestChain = 32

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
  /** Whether they hold the state of the machine, from which it goes on. */
  readonly hasState: boolean
}

/** The images that machines name, and the disks that are made of them. */
export class MachineImages {
  readonly #options: MachineImagesOptions

  constructor(options: MachineImagesOptions) {
    this.#options = options
  }

  /** The name under which an image is kept and shown; 409 with `image` when there is none. */
  async named(node: MachineKindNode, field: string, name: string): Promise<{ name: string; file: string }> {
    try {
      return await this.#options.library.lookup(kind, name, node.projectPath)
    } catch (error) {
      if (!(error instanceof ApiError) || error.extra.image === undefined) throw error
      throw missingImage(error.message.replace(/^image:/, `${field}:`), error.extra.image)
    }
  }

  /** The tool for disks beside an emulator, in a cell where programs are confined; `directory` is that of a node. 409. */
  async tool(directory: string, emulator: string): Promise<ImageTool> {
    const path = findImageTool(emulator)
    const confinement = await this.#options.sandbox.confinement()
    if (confinement === undefined) return path
    return new ConfinedTool({ path, confinement, directory, images: this.#options.library.directories(kind) })
  }

  /** Where images are. */
  directories(): string[] {
    return this.#options.library.directories(kind)
  }

  /** Lets an emulator that runs confined read an image that it is to open now. */
  async showLate(file: string): Promise<void> {
    const found = await this.#options.sandbox.find()
    if (!('protection' in found) || this.#options.isLocal()) return
    await letRead(found.protection.user, file, this.#options.library.directories(kind))
  }

  /** The file of a field; undefined when it names none. */
  async find(node: MachineKindNode, field: ImageField): Promise<string | undefined> {
    const name = node.record.properties[field]
    return name === '' ? undefined : (await this.named(node, field, name)).file
  }

  /** Makes and checks the disks of a machine that is about to start. */
  async disks(node: MachineKindNode, toolFor: () => Promise<ImageTool>): Promise<PreparedDisks> {
    const { on_close } = node.record.properties
    const saves = on_close === 'save_vm_state'
    const used = diskSlots.filter((slot) => this.#nameOf(node, slot) !== '')
    const stateDisk = join(node.directory, stateDiskName)
    // A directory too: a client may have sent files there.
    if (!saves) await withDiskErrors(stateDiskName, () => rm(stateDisk, { recursive: true, force: true }))
    if (used.length === 0 && !saves) return { disks: [], stateDisk: undefined, warnings: [], hasState: false }
    const tool = await toolFor()
    using _cell = typeof tool === 'string' ? null : tool
    // First: each file that is shown later takes a new cell.
    for (const slot of used) await this.#shownFile(node, slot, tool)
    await requireSpace(node.directory, this.#options.minFreeMb())
    const prepared: (PreparedDisk & { slot?: DiskSlot })[] = []
    for (const slot of used) prepared.push({ ...(await this.disk(node, slot, tool)), slot })
    if (saves && used.length === 0)
      prepared.push(await prepareStateDisk(tool, stateDisk, { allow: this.#allowOf(node, tool) }))
    else await requireNoState(tool, stateDisk)
    const holding = prepared.filter(({ snapshots }) => snapshots.includes(savedStateTag))
    // A state that is not gone on from would be one of other disks.
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

  /** Makes and checks one disk; 409 when the node has none there. */
  async disk(node: MachineKindNode, slot: DiskSlot, tool: ImageTool): Promise<PreparedDisk> {
    const { linked_clone, formats } = node.record.properties
    const file = await this.#shownFile(node, slot, tool)
    const allow = this.#allowOf(node, tool)
    if (linked_clone) return prepareOverlay(tool, { path: join(node.directory, overlayName(slot)), base: file, allow })
    const disk = await prepareImage(tool, file, { format: formats[file], allow })
    node.record.properties = { ...node.record.properties, formats: { ...formats, [file]: disk.format } }
    return disk
  }

  /** The image of a disk, which the tool may then open; 409 when the node has none there. */
  async #shownFile(node: MachineKindNode, slot: DiskSlot, tool: ImageTool): Promise<string> {
    const name = this.#nameOf(node, slot)
    if (name === '') throw conflict(`The node has no disk ${slot}: set ${slot}_disk_image first`)
    const { file } = await this.named(node, `${slot}_disk_image`, name)
    if (typeof tool !== 'string') await tool.see(file, !node.record.properties.linked_clone)
    return file
  }

  /** Takes the saved states out of the disks in a directory like that of a node. */
  async forgetState(directory: string, emulator: string): Promise<void> {
    const names = (await readdir(directory)).filter((name) => ownDisk.test(name))
    if (names.length === 0) return
    const tool = await this.tool(directory, emulator)
    using _cell = typeof tool === 'string' ? null : tool
    for (const name of names)
      await deleteSnapshot(tool, { path: join(directory, name), format: 'qcow2' }, savedStateTag)
  }

  /** 409 when images that an emulator has opened read what `disks` would have refused: since then a client may have replaced them. */
  async requireOpened(node: MachineKindNode, images: readonly ToolInfo[]): Promise<void> {
    if (this.#options.isLocal()) return
    for (const image of images) {
      for (const file of referencesIn(image)) {
        // An extent in the image itself.
        if (file !== image.filename && !(await this.#isOwn(node, file))) throw notAmongImages(file)
      }
    }
  }

  /** What an image may read; anything in local mode. */
  #allowOf(node: MachineKindNode, tool: ImageTool): Overlay['allow'] {
    return this.#options.isLocal() ? undefined : (facts) => this.#requireOwn(node, tool, facts)
  }

  #nameOf(node: MachineKindNode, slot: DiskSlot): string {
    return node.record.properties[`${slot}_disk_image`]
  }

  /** 409 when an image reads a file that is none of ours: it could show a guest any file of the host. */
  async #requireOwn(node: MachineKindNode, tool: ImageTool, facts: DiskFacts, depth = 0): Promise<void> {
    for (const file of facts.references) {
      if (!(await this.#isOwn(node, file)) || depth >= deepestChain) throw notAmongImages(file)
      if (typeof tool !== 'string') await tool.see(file)
      await this.#requireOwn(
        node,
        tool,
        await inspectImage(tool, file, facts.backing === file ? facts.backingFormat : undefined),
        depth + 1,
      )
    }
  }

  async #isOwn({ projectPath }: MachineKindNode, file: string): Promise<boolean> {
    return file.startsWith('/') && this.#options.library.isInside(kind, file, projectPath)
  }
}

const notAmongImages = (file: string): Error =>
  conflict(`The image is made of another file, ${file}, that is not among the images; only local mode allows that`)

/** A machine that had no disk when its state was saved cannot go on with one. */
async function requireNoState(tool: ImageTool, stateDisk: string): Promise<void> {
  if (!existsSync(stateDisk)) return
  const { snapshots } = await inspectImage(tool, stateDisk, 'qcow2')
  if (snapshots.includes(savedStateTag))
    throw conflict(`The machine had no disk when it was stopped; ${staleStateHint}`)
}
