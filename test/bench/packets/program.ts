import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { KeeperClient } from '../../../runtime/node/keeper/client/client.ts'
import { ProcessorTime } from '../../../runtime/node/os/system/processor-time.ts'
import { type Service, startService } from '../service.ts'
import type { Relay } from './bed.ts'
import type { Setup } from './relay.ts'
import { linkTypeEthernet, type Ports, type Targets, wire } from './wiring.ts'

/**
 * The packet paths of the build that is measured: each is the keeper of a service, and opens ports as its service has it do, by the
 * protocol of the two.
 */
export class Program implements AsyncDisposable {
  readonly #services: Service[] = []

  /** A keeper of its own for every setup, so that the keys, the memory and the processor time of each are its own. */
  async relay(setup: Omit<Setup, 'kind'>): Promise<Targets & { relay: Relay }> {
    const service = await startService()
    this.#services.push(service)
    const keeper = await keeperOf(service)
    const time = new ProcessorTime(keeper.pid)
    const relay: Relay = {
      async usage() {
        const { memoryMb } = await service.usage()
        return { cpu: (time.read() ?? Number.NaN) * 1000, memory: memoryMb }
      },
      async close() {
        time.close()
        keeper.disconnect()
        await service.close()
      },
    }
    return { relay, ...(await wire(portsOf(keeper), { ...setup, kind: 'fast' })) }
  }

  /** Ends what a failed suite has left. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.allSettled(this.#services.map((service) => service.close()))
  }
}

/** A connection to the keeper, which is started with the first node that needs it. */
async function keeperOf({ data, call }: Service): Promise<KeeperClient> {
  const { project_id } = (await call('POST', '/v2/compute/projects', { name: 'bench' })) as { project_id: string }
  const nodes = `/v2/compute/projects/${project_id}/switch/nodes`
  const { node_id } = (await call('POST', nodes, { name: 'S1' })) as { node_id: string }
  await call('POST', `${nodes}/${node_id}/start`)
  const keepers = join(data, 'run/keepers')
  const [generation = ''] = await readdir(keepers)
  return KeeperClient.open(join(keepers, generation))
}

const portsOf = (keeper: KeeperClient): Ports => ({
  async open(key, guest) {
    return (await keeper.call('port.open', { key, ...guest })).switch_port
  },
  async attach(key, nio) {
    await keeper.call('nio.attach', { key, nio })
  },
  async capture(key, file) {
    await keeper.call('capture.start', { key, file, link_type: linkTypeEthernet, floor_mb: 0 })
  },
  async bridge(key, run) {
    await keeper.call('unit.start', { key, run })
  },
  async join(links) {
    await keeper.call('link.join', { links })
  },
})
