import { join } from 'node:path'
import { checkedAgent } from '../../../src/compute/checked-agent.ts'
import type { ApplianceVmService } from '../../../src/fleet/appliance-vm/appliance-vm.ts'
import { EventLog } from '../../../src/fleet/events/event-log.ts'
import { lastLoad } from '../../../src/fleet/events/last-load.ts'
import { mebibyte } from '../../../src/labs/lab/lab-limits.ts'
import type { LabPorts } from '../../../src/labs/service.ts'
import type { Load } from '../../../src/model/host.ts'
import type { LabEvent } from '../../../src/model/lab/event.ts'
import type { OrganizationLimits } from '../../../src/model/organization.ts'
import type { AppOptions, AppServices } from '../../../src/server/app-options.ts'
import type { Tokens } from '../../../src/server/auth/tokens.ts'
import { composeCompute, composeGateway } from '../../../src/server/compose.ts'
import type { ServiceRecords } from '../engine/storage/service-records.ts'
import type { Log } from '../os/log/log.ts'
import { version } from '../os/system/version.ts'
import { createNodeAgent, type ReopenedProjects } from './agent.ts'
import { openAppliance } from './appliance-vm/node-appliance.ts'
import { labLimitsOf } from './config/lab-limits.ts'
import type { LoadedConfig } from './config/load.ts'
import { diagnose } from './doctor/doctor.ts'
import { ImageDigestFile, nodeHasher } from './fleet/image-digest-file.ts'
import { createNodeFleet } from './fleet/node-fleet.ts'
import { PlacementLog } from './fleet/placement-log.ts'
import { callerIsLocal, callerMayExecute, callerName } from './http/caller.ts'
import { ArchiveFiles } from './labs/archive-files.ts'
import { HostProjectFiles } from './labs/host-projects.ts'
import { LabFiles } from './labs/lab-files.ts'
import { TrustedFiles } from './labs/trusted-files.ts'
import { FileZipArchives } from './labs/zip-archives.ts'
import { processMetrics, versionFamily } from './metrics/process-metrics.ts'

/** What runs the labs of a service: this host, or the computes of a gateway. */
export interface LabRuntime extends Pick<AppOptions, 'agent'> {
  readonly services: AppServices
  /** What the service before left open. Absent on a gateway. */
  readonly reopened?: Promise<ReopenedProjects>
  /** Shuts the appliance VM down, which takes its time; it has a timeout of its own. Before `close`. */
  closeApplianceVm(): Promise<void>
  close(): Promise<void>
}

export interface LabRuntimeOptions {
  readonly config: LoadedConfig
  readonly log: Log
  readonly records: ServiceRecords
  readonly tokens: Tokens | undefined
  /** See `NodeFleetOptions.local`. */
  readonly port: () => number
  /** Answers a request of the service to itself. */
  readonly answerOwnRequest: (request: Request) => Promise<Response>
}

/** Of a gateway: `records` and `tokens` are those of one organization. */
export interface GatewayLabOptions extends Omit<LabRuntimeOptions, 'port' | 'answerOwnRequest'> {
  /** Absent: `default`. */
  readonly organization?: string
  readonly limits: () => OrganizationLimits
}

export interface GatewayLabRuntime extends LabRuntime {
  /** What there is: projects, labs among them, and computes. */
  readonly content: () => { readonly projects: number; readonly computes: number }
}

/** The host agent of this machine, with the computes beside it. */
export async function openCompute({
  config,
  log,
  records,
  tokens,
  port,
  answerOwnRequest,
}: LabRuntimeOptions): Promise<LabRuntime> {
  const opening = [
    createNodeAgent({ config, log, records, diagnose }),
    LabFiles.open(records, { maxBytes: maxBytesOf(config) }),
  ] as const
  const [{ agent, drivers, isImage, reopened, close: closeAgent }, store] = await Promise.all(opening)
  const trusted = await TrustedFiles.open(records)
  const local = { port, agent: checkedAgent(agent), fetch: answerOwnRequest }
  const { fleet, close: closeFleet } = await createNodeFleet({ config, log, records, tokens, local })
  const appliance: ApplianceVmService = await openAppliance({ records, fleet, drivers })
  const { labs, services } = await composeCompute(fleet, {
    ...(await labPorts({ config, log, records, store, load: () => agent.host.load() })),
    hostProjects: new HostProjectFiles({
      directory: join(records.data, 'projects'),
      isLocal: () => callerIsLocal(config),
    }),
    trust: {
      // Whoever sends the file: a node that could not be made is tried again by the service itself, which is in local mode.
      isJudged: () => config.current.local,
      mayTrust: () => callerIsLocal(config) || callerMayExecute(),
      isImage,
      has: (digest) => trusted.has(digest),
      add: (digest) => trusted.add(digest),
    },
  })
  void labs.lifecycle.reopenAfterStart(reopened)
  return {
    agent,
    services: { ...services, appliance },
    reopened,
    closeApplianceVm: () => appliance.close(),
    async close() {
      await labs.shutdown()
      await store.close()
      await closeFleet()
      await closeAgent()
    },
  }
}

/** The computes of a fleet as one host. */
export async function openGateway(options: GatewayLabOptions): Promise<GatewayLabRuntime> {
  const { config, log, records, tokens, limits, organization } = options
  const placements = await PlacementLog.open(records)
  const maxComputes = () => limits().max_computes
  const { fleet, close: closeFleet } = await createNodeFleet({
    config,
    log,
    records,
    tokens,
    maxComputes,
    organization,
  })
  // The process is that of the deployment.
  const metrics = async () => [versionFamily(version), ...(organization === undefined ? await processMetrics() : [])]
  const store = await LabFiles.open(records, { maxBytes: maxBytesOf(config) })
  const keepsArchives = config.current.fleet.keep_archives
  const { gateway, labs, services, projects } = await composeGateway({
    fleet,
    placements,
    maxProjects: () => limits().max_projects,
    digests: { store: await ImageDigestFile.open(records), newHasher: nodeHasher },
    warn: (message) => log.warn({}, message),
    host: { version, metrics },
    labs: await labPorts({ config, log, records, store, keepsArchives }),
  })
  void labs.lifecycle.reopenAfterStart()
  return {
    agent: gateway.agent,
    services,
    content: () => ({ projects: projects().size, computes: fleet.remote.length }),
    closeApplianceVm: async () => {},
    async close() {
      await labs.shutdown()
      await store.close()
      gateway.close()
      await closeFleet()
      await placements.close()
    },
  }
}

const maxBytesOf = (config: LoadedConfig) => () => labLimitsOf(config)().open_labs_mb * mebibyte

interface LabPortsOptions extends Pick<LabRuntimeOptions, 'config' | 'log' | 'records'> {
  readonly store: LabFiles
  readonly load?: () => Promise<Load>
  /** Whether closed labs are archived. */
  readonly keepsArchives?: boolean
}

/** What labs get on any host of Node: their documents are in the data directory. */
async function labPorts({
  config,
  log,
  records,
  store,
  load,
  keepsArchives = false,
}: LabPortsOptions): Promise<LabPorts> {
  const { limits } = config.current
  const zipOptions = {
    records,
    minFreeMb: () => config.current.min_free_space_mb,
    bodyTimeoutMs: limits.body_timeout_ms,
  }
  return {
    store,
    events: new EventLog<LabEvent>(
      { history: limits.history, feeds: () => config.current.limits.feeds },
      load && lastLoad(load),
      callerName,
    ),
    limits: labLimitsOf(config),
    zip: new FileZipArchives(zipOptions),
    archiveStore: keepsArchives ? await ArchiveFiles.open(zipOptions) : undefined,
    drainS: () => config.current.fleet.drain_s,
    warn: (message) => log.warn({}, message),
    report: (err, what) => log.error({ err }, what),
  }
}
