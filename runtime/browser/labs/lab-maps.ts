import type { LabProject, Patchbay } from '../../../src/client/patchbay.ts'
import { ignore } from '../../../src/lib/async/ignore.ts'
import { Slots } from '../../../src/lib/async/slots.ts'
import type { LabMap } from '../canvas/map-picture.tsx'

/** Maps that are read at a time: the service has more to do than to draw maps. */
const atATime = 2

interface KnownMap {
  readonly revision: number
  readonly map: LabMap
}

/** The maps of labs in a list, without states and drawings. Each is read when it is wanted, and again after the next edit. */
export class LabMaps {
  readonly #client: Patchbay
  readonly #slots = new Slots(atATime)
  readonly #known = new Map<string, KnownMap>()

  constructor(client: Patchbay) {
    this.#client = client
  }

  /** The map as it was read last. */
  known(id: string): LabMap | undefined {
    return this.#known.get(id)?.map
  }

  /** The present map; undefined: it cannot be read. A signal that aborts before its turn comes: it is not wanted any more, and not read. */
  read({ project_id, revision }: Pick<LabProject, 'project_id' | 'revision'>, over: AbortSignal) {
    return this.#slots.run(async () => {
      const known = this.#known.get(project_id)
      if (over.aborted || known?.revision === revision) return known?.map
      const read = await this.#client
        .call('GET /v2/projects/{project_id}/topology', { params: { project_id } })
        .catch(ignore('the lab is shown with the map that it had'))
      if (read === undefined) return known?.map
      const map = { nodes: [...read.nodes, ...read.segments], links: read.links, drawings: [] }
      this.#known.set(project_id, { revision: read.revision, map })
      return map
    })
  }
}
