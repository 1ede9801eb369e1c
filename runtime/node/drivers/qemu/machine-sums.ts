import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { withTimeout } from '../../../../src/lib/async/timeout.ts'
import { type DiskSlot, diskSlots, type MachineEmulatorNode } from '../../../../src/model/kinds/machine-emulator.ts'
import type { KindListener } from '../../engine/nodes/kind.ts'
import { overlayName } from './disks.ts'
import type { MachineImages } from './machine-images.ts'
import { type ImageField, imageFields, type MachineKindNode } from './properties.ts'

type SumField = Extract<keyof MachineEmulatorNode, `${string}_md5sum`>
type SumFields = Pick<MachineEmulatorNode, SumField>

interface MachineSumsOptions {
  readonly images: MachineImages
  readonly md5Of: (file: string) => Promise<string | undefined>
  readonly listener: KindListener
  /** Wait of an answer for checksums; slower ones follow by an event, ms. */
  readonly waitMs: number
}

/** The MD5 sums of the images of machines; they are stored in the record of the node. */
export class MachineSums {
  readonly #options: MachineSumsOptions
  readonly #running = new Map<string, Promise<void>>()

  constructor(options: MachineSumsOptions) {
    this.#options = options
  }

  /** The known sums; null for unknown ones. */
  of(node: MachineKindNode): SumFields {
    const properties = node.record.properties
    const fields = imageFields.map((field) => {
      const sum = properties.sums[field]
      return [`${field}_md5sum`, sum?.image === properties[field] && sum.image !== '' ? sum.md5 : null]
    })
    return Object.fromEntries(fields) as SumFields
  }

  /** Computes missing sums, and waits at most `waitMs`. */
  async update(node: MachineKindNode): Promise<void> {
    const done = this.#sum(node)
    const late = await withTimeout(done, this.#options.waitMs, () => 'late')
    if (late === 'late') void done.then(() => this.#options.listener.updated(node.key))
  }

  /** Computes sums without a wait, because an image may have been replaced. Warns when the base of an overlay has changed. */
  check(node: MachineKindNode): void {
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
    this.#running.delete(key)
  }

  #warn({ key }: MachineKindNode, field: ImageField): void {
    const advice = 'its disk may no longer fit; restore the original image, or use a new node'
    this.#options.listener.warned(key, `${field} has changed since its disk was created: ${advice}`)
  }

  /** Serialises the sums of a node. */
  #sum(node: MachineKindNode): Promise<void> {
    const before = this.#running.get(node.key) ?? Promise.resolve()
    const summing = before.then(async () => {
      for (const field of imageFields) await this.#sumOf(node, field)
    })
    const settled = summing.catch(ignore('the sums stay unknown'))
    this.#running.set(node.key, settled)
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

/** The fields of images with an existing overlay. */
function overlaidFields(node: MachineKindNode): `${DiskSlot}_disk_image`[] {
  if (!node.record.properties.linked_clone) return []
  const slots = diskSlots.filter((slot) => existsSync(join(node.directory, overlayName(slot))))
  return slots.map((slot) => `${slot}_disk_image` as const)
}
