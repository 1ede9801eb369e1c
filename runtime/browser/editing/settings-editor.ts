import { effect, signal } from '@preact/signals'
import type { LabKind, LabNode } from '../../../src/client/patchbay.ts'
import { PatchbayError } from '../../../src/client/patchbay-error.ts'
import { FieldFault } from '../forms/field-fault.ts'
import type { LabStore } from '../state/lab-store.ts'
import { messageOf, notify } from '../state/notices.ts'
import type { NodeJobs } from './node-jobs.ts'

interface SettingsEditorOptions {
  readonly store: LabStore
  readonly jobs: NodeJobs
  /** Changes a node; false when `onFault` was told why not. */
  readonly change: (
    node_id: string,
    body: { properties: Record<string, unknown> },
    onFault: (error: unknown) => void,
  ) => Promise<boolean>
}

/** Saves settings of nodes, and knows which nodes run with those that they had before. */
export class SettingsEditor {
  /** Ids of nodes with settings that take effect at their next start. */
  readonly waiting = signal<ReadonlySet<string>>(new Set())
  readonly #options: SettingsEditorOptions

  constructor(options: SettingsEditorOptions) {
    this.#options = options
    const { nodes } = options.store
    effect(() => {
      const left = [...this.waiting.value].filter((id) => isOn(nodes.get(id)))
      if (left.length < this.waiting.value.size) this.waiting.value = new Set(left)
    })
  }

  /** Rejects with a `FieldFault`. */
  async save({ node_id, name }: LabNode, kind: LabKind, properties: Record<string, unknown>): Promise<true> {
    const { store, change } = this.#options
    let fault: unknown
    const isSaved = await change(node_id, { properties }, (error) => {
      fault = error
    })
    if (!isSaved) throw this.#faultOf(fault, node_id, kind)
    const waits = isOn(store.nodes.get(node_id)) && needsStart(kind, Object.keys(properties))
    if (waits) {
      this.waiting.value = new Set([...this.waiting.value, node_id])
      const restart = { verb: `Restart ${name}`, run: () => void this.#options.jobs.restart([node_id]) }
      notify('done', `The settings of ${name} are saved, and take effect at its next start.`, restart)
    } else notify('done', `The settings of ${name} are saved.`)
    return true
  }

  /** Why settings were refused; an image that is missing can be uploaded. */
  #faultOf(error: unknown, node_id: string, kind: LabKind): FieldFault {
    const image = error instanceof PatchbayError && error.code === 'image-missing' ? error.answer.image : undefined
    if (typeof image !== 'string') return new FieldFault(messageOf(error), { cause: error })
    const upload = (save: () => void) => {
      this.#options.jobs.missing.value = [{ node_id, kind: kind.name, image, save }]
    }
    return new FieldFault(messageOf(error), { upload, cause: error })
  }
}

const isOn = (node: LabNode | undefined): boolean => node !== undefined && node.status !== 'stopped'

/** Whether one of some settings takes effect only at the next start of a node. */
const needsStart = ({ is_always_on, live_settings }: LabKind, names: readonly string[]): boolean =>
  // An older service does not say which are live.
  !is_always_on && names.some((name) => !(live_settings ?? []).includes(name))
