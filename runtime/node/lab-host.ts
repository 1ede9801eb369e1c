import type { AppOptions } from '../../src/app.ts'
import type { Tokens } from '../../src/auth/tokens.ts'
import type { ApplianceVmService } from '../../src/fleet/appliance-vm.ts'
import { fleetMembers } from '../../src/gateway/fleet-members.ts'
import { createGateway } from '../../src/gateway/gateway-agent.ts'
import { peerAddress } from '../../src/gateway/peer-address.ts'
import { createNodeAgent, type TakenOver } from './agent.ts'
import { openAppliance } from './appliance-vm/node-appliance.ts'
import type { LoadedConfig } from './config/load.ts'
import { diagnose } from './doctor/doctor.ts'
import { ImageDigestFile, nodeHasher } from './fleet/image-digest-file.ts'
import { createNodeFleet } from './fleet/node-fleet.ts'
import { PlacementLog } from './fleet/placement-log.ts'
import { processMetrics, versionFamily } from './host/process-metrics.ts'
import type { Log } from './log/log.ts'
import type { ServiceRecords } from './storage/service-records.ts'
import { version } from './system/version.ts'

/** Where the labs of a service run: on this host, or on the computes of a gateway. */
export interface LabHost extends Pick<AppOptions, 'agent' | 'fleet' | 'appliance' | 'between' | 'uploads'> {
  /** What the service before left open. Absent on a gateway. */
  readonly takenOver?: Promise<TakenOver>
  /** Ends the appliance VM, which takes its time; it has a timeout of its own. */
  end(): Promise<void>
  close(): Promise<void>
}

export interface LabHostOptions {
  readonly config: LoadedConfig
  readonly log: Log
  readonly records: ServiceRecords
  readonly tokens: Tokens | undefined
  /** See `NodeFleetOptions.local`. */
  readonly port: () => number
  /** Answers a request of the service to itself. */
  readonly inside: (request: Request) => Promise<Response>
}

/** The host agent of this machine, with the computes beside it. */
export async function openCompute({ config, log, records, tokens, port, inside }: LabHostOptions): Promise<LabHost> {
  const { agent, drivers, takenOver, close: closeAgent } = await createNodeAgent({ config, log, records, diagnose })
  const local = { port, host: agent.host, fetch: inside }
  const { fleet, close: closeFleet } = await createNodeFleet({ config, log, records, tokens, local })
  const appliance: ApplianceVmService = await openAppliance({ records, fleet, drivers })
  return {
    agent,
    fleet,
    appliance,
    takenOver,
    end: () => appliance.close(),
    async close() {
      await closeFleet()
      await closeAgent()
    },
  }
}

/** The computes of a fleet as one host. */
export async function openGateway({ config, log, records, tokens }: LabHostOptions): Promise<LabHost> {
  const placements = await PlacementLog.open(records)
  const { fleet, close: closeFleet } = await createNodeFleet({ config, log, records, tokens })
  const members = fleetMembers(fleet)
  const gateway = createGateway({
    members,
    placements,
    digests: { store: await ImageDigestFile.open(records), newHasher: nodeHasher },
    warn: (message) => log.warn({}, message),
    host: { version, metrics: async () => [versionFamily(version), ...(await processMetrics())] },
  })
  return {
    agent: gateway.agent,
    fleet,
    between: peerAddress(fleet, gateway.locator),
    uploads: gateway.uploads,
    end: async () => {},
    async close() {
      gateway.close()
      await closeFleet()
      await placements.close()
    },
  }
}
