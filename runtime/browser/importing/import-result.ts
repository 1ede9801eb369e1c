import { signal } from '@preact/signals'
import type { LabNode, LabTemplate } from '../../../src/client/patchbay.ts'
import { replacedText, replaceNode } from '../editing/replace-node.ts'
import { ImageUpload } from '../parts/image-upload.ts'
import { client } from '../state/client.ts'
import { messageOf } from '../state/notices.ts'
import { type NodeRow, type NotCreated, withImage } from './node-rows.ts'

/** The nodes of a lab that was made of a file: which of them can run, and what the others lack. */
export class ImportResult {
  readonly lab: string
  /** How many nodes the lab has; those of an archive have no rows when they can run. */
  readonly total: number
  readonly rows = signal<readonly NodeRow[]>([])
  readonly templates = signal<readonly LabTemplate[]>([])
  readonly upload = signal<ImageUpload | undefined>(undefined)
  readonly failure = signal('')
  /** The node that is being replaced. */
  readonly busy = signal('')
  readonly #project_id: string
  /** Applies the file again: nodes whose images came are made. Undefined: they are made at their next start. */
  readonly #again: (() => Promise<readonly NotCreated[]>) | undefined

  constructor(
    { lab, project_id }: { lab: string; project_id: string },
    rows: readonly NodeRow[],
    { again, total = rows.length }: { again?: () => Promise<readonly NotCreated[]>; total?: number } = {},
  ) {
    this.lab = lab
    this.#project_id = project_id
    this.rows.value = rows
    this.total = total
    this.#again = again
    if (this.missing.length > 0)
      client.call('GET /v2/templates').then(
        (templates) => {
          this.templates.value = templates.toSorted((a, b) => a.name.localeCompare(b.name))
        },
        (error) => this.#fail(error),
      )
  }

  get missing(): readonly NodeRow[] {
    return this.rows.value.filter(({ reason }) => reason !== undefined)
  }

  /** Uploads an image under the name that nodes have for it, and makes these nodes. Never rejects. */
  async give(kind: string, image: string, file: File): Promise<void> {
    this.failure.value = ''
    const upload = new ImageUpload(kind, new File([file], image))
    this.upload.value = upload
    await upload.run()
    if (upload.state.value !== 'done') return
    this.upload.value = undefined
    try {
      const left = await this.#again?.()
      this.rows.value = this.rows.value.map((row) => (row.images.includes(image) ? withImage(row, image, left) : row))
    } catch (error) {
      this.#fail(error)
    }
  }

  /** Puts a node of another type in place of one that cannot run. Never rejects. */
  async replace(name: string, template: LabTemplate): Promise<void> {
    this.failure.value = ''
    this.busy.value = name
    try {
      const replaced = await replaceNode(client, await this.#nodeNamed(name), template)
      const { node } = replaced
      const links = replacedText(replaced)
      const note = `replaced by ${template.name}${links === '' ? '' : `; ${links}`}`
      this.#change(name, { reason: undefined, images: [], kind: node.node_type, note })
    } catch (error) {
      this.#fail(error)
    } finally {
      this.busy.value = ''
    }
  }

  async #nodeNamed(name: string): Promise<LabNode> {
    const params = { project_id: this.#project_id }
    // A lab of an archive is closed.
    await client.call('POST /v2/projects/{project_id}/open', { params })
    const nodes = await client.call('GET /v2/projects/{project_id}/nodes', { params })
    const node = nodes.find((it) => it.name === name)
    if (node === undefined) throw new Error(`The lab has no node ${name} any more.`)
    return node
  }

  #change(name: string, changes: Partial<NodeRow>): void {
    this.rows.value = this.rows.value.map((row) => (row.name === name ? { ...row, ...changes } : row))
  }

  #fail(error: unknown): void {
    this.failure.value = messageOf(error)
  }
}
