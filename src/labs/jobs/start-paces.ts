import { kindIfKnown } from '../../model/kinds/node.ts'
import type { ComputePool } from '../computes/compute-pool.ts'
import type { NodeRecord } from '../lab/document.ts'
import { StartPace } from './start-pace.ts'

/** The weight of the start of a machine, see StartPace. */
const machineWeight = 4

const weightKey = ({ compute_id, node_type }: NodeRecord): string => `${compute_id} ${node_type}`

/** The pace of each compute. */
export class StartPaces {
  readonly #computes: Pick<ComputePool, 'agent'>
  readonly #paces = new Map<string, StartPace>()
  /** Computes where starts of a kind have no weight, by the last start of the kind: keys of `weightKey`. */
  readonly #weightless = new Set<string>()

  constructor(computes: Pick<ComputePool, 'agent'>) {
    this.#computes = computes
  }

  /**
   * Resolves when the compute of a node may get a request for it, with the function to call after the request. Only starts wait for the
   * load of the compute. Rejects when the signal aborts.
   */
  turn(
    record: NodeRecord,
    {
      isStart,
      signal,
      loadBelow,
    }: { readonly isStart: boolean; readonly signal: AbortSignal; readonly loadBelow: number | undefined },
  ): Promise<() => void> {
    return this.#paceOf(record.compute_id).turn(() => (isStart ? this.#weightOf(record) : 0), signal, loadBelow)
  }

  /** Learns from a started node whether starts of its kind have a weight on its compute: a setting of the compute. */
  learnWeight(record: NodeRecord, commandLine: string | null): void {
    if (kindIfKnown(record.node_type)?.startsWithoutWeight?.(commandLine) === true)
      this.#weightless.add(weightKey(record))
    else this.#weightless.delete(weightKey(record))
  }

  #weightOf(record: NodeRecord): number {
    if (this.#weightless.has(weightKey(record))) return 0
    return kindIfKnown(record.node_type)?.startWeight ?? machineWeight
  }

  #paceOf(computeId: string): StartPace {
    const known = this.#paces.get(computeId)
    const load = async () => (await this.#computes.agent(computeId).host.load()).cpu_usage_percent
    const pace = known ?? new StartPace(load)
    this.#paces.set(computeId, pace)
    return pace
  }
}
