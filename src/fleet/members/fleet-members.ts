import type { RemoteCompute } from '../../compute/remote/remote-compute.ts'
import type { HostAgent } from '../../host-agent.ts'
import type { RelayedAnswer } from '../../lib/http/relayed-answer.ts'
import type { Caller } from '../../model/access/caller.ts'
import type { Load } from '../../model/host.ts'
import { type Forwarded, forward } from '../forward/forward.ts'
import { computeKey } from '../pool/computes.ts'
import type { Fleet } from '../pool/fleet.ts'
import { fleetAgent } from './fleet-agent.ts'
import { labelsOf } from './labels.ts'
import type { FleetMembers } from './members.ts'

/** A compute of a fleet as a compute of a gateway. */
export class FleetMember {
  /** Lower-case id of the compute. */
  readonly id: string
  readonly #fleet: Fleet
  readonly #compute: RemoteCompute

  constructor(fleet: Fleet, compute: RemoteCompute) {
    this.id = computeKey(compute.record.compute_id)
    this.#fleet = fleet
    this.#compute = compute
  }

  /** The name in messages. */
  get name(): string {
    return this.#compute.name
  }

  get isConnected(): boolean {
    return this.#compute.state === 'connected' || this.#fleet.shouldRetryConnect(this.id)
  }

  /** Since when it is not connected, ms since 1970; undefined while it is connected. */
  get disconnectedSince(): number | undefined {
    return this.#compute.disconnectedSince
  }

  /** The last report; undefined before the first one. */
  get load(): Load | undefined {
    return this.#compute.session.load
  }

  /** False for a compute that is drained: its projects stay, new projects go to other computes. */
  get acceptsProjects(): boolean {
    return this.#compute.record.accepts_projects ?? true
  }

  /** The relative share of new projects. */
  get weight(): number {
    return this.#compute.record.weight ?? 1
  }

  /** All its labels: those given to it, and those that it found itself. */
  get labels(): readonly string[] {
    return labelsOf({ labels: this.#compute.record.labels, capabilities: this.#compute.session.capabilities })
  }

  /** An agent whose requests name the caller to the compute; absent: a user. */
  agentFor(caller?: Caller): HostAgent {
    return fleetAgent(this.#fleet, this.id, { caller })
  }

  /** Forwards a request to the compute. */
  forward(request: Forwarded): Promise<Response | RelayedAnswer> {
    return forward(this.#fleet, this.id, request)
  }
}

/** The computes of a fleet as the computes of a gateway. */
export function fleetMembers(fleet: Fleet): FleetMembers {
  const known = new WeakMap<RemoteCompute, FleetMember>()
  const memberOf = (compute: RemoteCompute): FleetMember => {
    const member = known.get(compute) ?? new FleetMember(fleet, compute)
    known.set(compute, member)
    return member
  }
  return {
    all: async () => fleet.remote.map(memberOf),
    find(id) {
      const compute = fleet.find(id)
      return compute && memberOf(compute)
    },
    watch(listener) {
      const connected = new Map<string, boolean>()
      return fleet.listen((event) => {
        if ('message' in event) return
        const { compute_id, connected: isConnected } = event.compute
        if (event.type === 'compute.deleted') {
          connected.delete(compute_id)
          return listener()
        }
        // Most updates only report a new load.
        if (event.type === 'compute.updated' && connected.get(compute_id) === isConnected) return
        connected.set(compute_id, isConnected)
        listener()
      })
    },
  }
}
