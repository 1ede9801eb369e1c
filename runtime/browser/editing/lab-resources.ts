import type {
  LabDrawingUpdate,
  LabLink,
  LabLinkCreate,
  LabLinkUpdate,
  LabNodeUpdate,
  Patchbay,
} from '../../../src/client/patchbay.ts'
import { KeyedMutex } from '../../../src/lib/async/keyed-mutex.ts'
import type { LabStore } from '../state/lab-store.ts'
import type { Table } from '../state/table.ts'

/** Changes nodes, links and drawings of a lab at the service. */
export class LabResources {
  readonly #client: Patchbay
  readonly #store: LabStore
  readonly #params: () => { project_id: string }
  /** Changes of one resource follow one another: two connections could change their order. */
  readonly #turns = new KeyedMutex()

  constructor(client: Patchbay, store: LabStore, params: () => { project_id: string }) {
    this.#client = client
    this.#store = store
    this.#params = params
  }

  putNode(node_id: string, body: LabNodeUpdate): Promise<void> {
    const params = { ...this.#params(), node_id }
    return this.#put(this.#store.nodes, node_id, () =>
      this.#client.call('PUT /v2/projects/{project_id}/nodes/{node_id}', { params, body }),
    )
  }

  putLink(link_id: string, body: LabLinkUpdate): Promise<void> {
    const { links } = this.#store
    const params = { ...this.#params(), link_id }
    return this.#put(links, link_id, async () => ({
      ...links.get(link_id),
      ...(await this.#client.call('PUT /v2/projects/{project_id}/links/{link_id}', { params, body })),
    }))
  }

  putDrawing(drawing_id: string, body: LabDrawingUpdate): Promise<void> {
    const params = { ...this.#params(), drawing_id }
    return this.#put(this.#store.drawings, drawing_id, () =>
      this.#client.call('PUT /v2/projects/{project_id}/drawings/{drawing_id}', { params, body }),
    )
  }

  makeLink(body: LabLinkCreate): Promise<LabLink> {
    return this.#client.call('POST /v2/projects/{project_id}/links', { params: this.#params(), body })
  }

  async deleteLink(link_id: string): Promise<void> {
    await this.#client.call('DELETE /v2/projects/{project_id}/links/{link_id}', {
      params: { ...this.#params(), link_id },
    })
  }

  /** Changes a resource. The answer is kept unless the feed was faster: an event may be of a later change by another user. */
  #put<T>(table: Table<T>, id: string, send: () => Promise<T>): Promise<void> {
    return this.#turns.run(id, async () => {
      const before = table.row(id)?.peek()
      const changed = await send()
      if (table.row(id)?.peek() === before) table.put(id, changed)
    })
  }
}
