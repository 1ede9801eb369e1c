import { quoteText } from '../../compute/remote/answer.ts'
import type { Outgoing } from '../../compute/remote/transport.ts'
import type { HostAgent } from '../../host-agent.ts'
import { type Compute, type ComputeCapabilities, localId } from '../../model/compute.ts'

/** This service as a compute of its own fleet. */
export interface LocalHost {
  readonly name: string
  /** The address for clients; read each time, as the port may be known only later. */
  readonly address: () => Pick<Compute, 'protocol' | 'host' | 'port'>
  readonly user: string | null
  /** Checks its input (`checkedAgent`). */
  readonly agent: HostAgent
  /** Answers an admitted request (`App.answerOwnRequest`). */
  readonly fetch: (request: Request) => Promise<Response>
}

/** The compute `local`: always present, never saved, and reached without a connection. */
export class LocalCompute {
  readonly #host: LocalHost
  #capabilities: Promise<ComputeCapabilities> | undefined

  constructor(host: LocalHost) {
    this.#host = host
  }

  get name(): string {
    return this.#host.name
  }

  get address(): Pick<Compute, 'protocol' | 'host' | 'port'> {
    return this.#host.address()
  }

  get agent(): HostAgent {
    return this.#host.agent
  }

  async show(): Promise<Compute> {
    const { name, user, agent } = this.#host
    const shown = { compute_id: localId, name, ...this.address, user, accepts_projects: true, weight: 1, labels: [] }
    try {
      const [capabilities, load] = await Promise.all([this.#ask(), agent.host.load()])
      return { ...shown, connected: true, ...load, capabilities, last_error: null }
    } catch (error) {
      return {
        ...shown,
        connected: false,
        cpu_usage_percent: null,
        memory_usage_percent: null,
        capabilities: { version: null, node_types: [] },
        last_error: quoteText((error as Error).message),
      }
    }
  }

  send({ method, path, headers, body, signal }: Outgoing): Promise<Response> {
    const init = { method, headers, signal, ...(body !== null && { body, duplex: 'half' }) }
    return this.#host.fetch(new Request(`http://localhost${path}`, init))
  }

  /** Cached: the capabilities do not change while the service runs. */
  #ask(): Promise<ComputeCapabilities> {
    this.#capabilities ??= this.#host.agent.host.capabilities().then(
      ({ version, platform, node_types, labels }) => ({
        version,
        platform,
        node_types,
        ...(labels !== undefined && { labels }),
      }),
      (error: unknown) => {
        this.#capabilities = undefined
        throw error
      },
    )
    return this.#capabilities
  }
}
