import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { ignore } from '../../../../src/async/ignore.ts'
import { withTimeout } from '../../../../src/async/timeout.ts'
import { type DiskSlot, diskSlots, type MachineEmulatorNode } from '../../../../src/kinds/machine-emulator.ts'
import type { KindListener } from '../kind.ts'
import { overlayName } from './disks.ts'
import type { MachineImages } from './machine-images.ts'
import { type ImageField, imageFields, type MachineKindNode } from './properties.ts'

type SumField = Extract<keyof MachineEmulatorNode, `${string}_md5sum`>
type SumFields = Pick<MachineEmulatorNode, SumField>

export interface MachineSumsOptions {
  readonly images: MachineImages
  readonly md5Of: (file: string) => Promise<string | undefined>
  readonly listener: KindListener
  /** Small images are summed up before an answer; large ones are told of by an event when they are, ms. */
  readonly waitMs: number
}

/** The MD5 sums of the images of machines, as their fields show them. They are kept in the record of the node. */
export class MachineSums {
  readonly #options: MachineSumsOptions
  readonly #summing = new Map<string, Promise<void>>()

  constructor(options: MachineSumsOptions) {
    this.#options = options
  }

  /** What is known now; null for what is not. */
  of(node: MachineKindNode): SumFields {
    const properties = node.record.properties
    const fields = imageFields.map((field) => {
      const sum = properties.sums[field]
      return [`${field}_md5sum`, sum?.image === properties[field] && sum.image !== '' ? sum.md5 : null]
    })
    return Object.fromEntries(fields) as SumFields
  }

  /** Sums up what has changed, and waits for that a moment. */
  async update(node: MachineKindNode): Promise<void> {
    const done = this.#sum(node)
    const late = await withTimeout(done, this.#options.waitMs, () => 'late')
    if (late === 'late') void done.then(() => this.#options.listener.updated(node.key))
  }

  /** The same without waiting: an image of the same name may be another one by now. */
  look(node: MachineKindNode): void {
    const before = this.of(node)
    const overlaid = overlaidFields(node)
    void this.#sum(node).then(() => {
      const now = this.of(node)
      for (const field of overlaid) {
        const [then, md5] = [before[`${field}_md5sum`], now[`${field}_md5sum`]]
        if (then !== null && md5 !== null && then !== md5) this.#warn(node, field)
      }
      if (JSON.stringify(now) !== JSON.stringify(before)) this.#options.listener.updated(node.key)
    })
  }

  forget(key: string): void {
    this.#summing.delete(key)
  }

  #warn({ key, record }: MachineKindNode, field: ImageField): void {
    const advice = 'its disk may not fit any more; put the image back as it was, or use a new node'
    const message = `${record.name}: ${field} is not the image any more that its disk was made of: ${advice}`
    this.#options.listener.happened(key, { type: 'log.warning', message })
  }

  /** One after the other a node: what came last counts. */
  #sum(node: MachineKindNode): Promise<void> {
    const before = this.#summing.get(node.key) ?? Promise.resolve()
    const summing = before.then(async () => {
      for (const field of imageFields) await this.#sumOf(node, field)
    })
    const settled = summing.catch(ignore('the sums stay unknown, as they are shown'))
    this.#summing.set(node.key, settled)
    return settled
  }

  async #sumOf(node: MachineKindNode, field: ImageField): Promise<void> {
    const image = node.record.properties[field]
    if (image === '') return
    const file = await this.#options.images.find(node, field).catch(() => undefined)
    const md5 = file === undefined ? null : ((await this.#options.md5Of(file)) ?? null)
    const { sums } = node.record.properties
    node.record.properties = { ...node.record.properties, sums: { ...sums, [field]: { image, md5 } } }
  }
}

/** The images that overlays, which are there already, were made of. */
function overlaidFields(node: MachineKindNode): `${DiskSlot}_disk_image`[] {
  if (!node.record.properties.linked_clone) return []
  const slots = diskSlots.filter((slot) => existsSync(join(node.directory, overlayName(slot))))
  return slots.map((slot) => `${slot}_disk_image` as const)
}
