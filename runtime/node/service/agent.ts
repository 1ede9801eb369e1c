import { machine, platform } from 'node:os'
import { basename, join } from 'node:path'
import { EventLog } from '../../../src/fleet/events/event-log.ts'
import type { LocalHostAgent } from '../../../src/host-agent.ts'
import { forbidden } from '../../../src/lib/errors/api-error.ts'
import type { EventPayload } from '../../../src/model/event.ts'
import type { Diagnosis } from '../../../src/model/host.ts'
import type { ImageKindName } from '../../../src/model/image.ts'
import { namedAction } from '../../../src/model/kinds/kind.ts'
import { isLinkable, nodeKinds } from '../../../src/model/kinds/node.ts'
import { createDrivers, type Drivers } from '../drivers/hypervisor/drivers.ts'
import { isImageOf } from '../drivers/index.ts'
import { type KindTimeouts, openKinds } from '../drivers/open.ts'
import { Images } from '../engine/images/images.ts'
import type { ImageUser } from '../engine/images/users.ts'
import { LinkChecks } from '../engine/link-check/link-checks.ts'
import { Captures } from '../engine/nodes/captures.ts'
import { Consoles } from '../engine/nodes/consoles.ts'
import { DirectLinks } from '../engine/nodes/direct-links.ts'
import type { EngineNode } from '../engine/nodes/engine-node.ts'
import { gatherFiles } from '../engine/nodes/gather.ts'
import { KeeperLink } from '../engine/nodes/keeper-link.ts'
import type { KindListener } from '../engine/nodes/kind.ts'
import { NodeLifecycle } from '../engine/nodes/lifecycle.ts'
import { Links } from '../engine/nodes/links.ts'
import { ConsoleListeners } from '../engine/nodes/listening.ts'
import { NodeTable } from '../engine/nodes/node-table.ts'
import { Nodes } from '../engine/nodes/nodes.ts'
import { NodeWaits } from '../engine/nodes/waits.ts'
import { PortAllocator } from '../engine/ports/allocator.ts'
import { ProjectFiles } from '../engine/projects/files.ts'
import type { OpenProject } from '../engine/projects/open-project.ts'
import { ProjectSnapshots } from '../engine/projects/project-snapshots.ts'
import { Projects } from '../engine/projects/projects.ts'
import { createRecovery } from '../engine/recovery/recovery.ts'
import { Checksums } from '../engine/storage/checksums.ts'
import { makeDirectory } from '../engine/storage/durable-file.ts'
import { ServiceRecords } from '../engine/storage/service-records.ts'
import { allowedInterfaces } from '../os/host/allowed-interfaces.ts'
import { hostLoad } from '../os/host/host-load.ts'
import { LoadMeter } from '../os/host/load.ts'
import type { Log } from '../os/log/log.ts'
import { type FoundProtection, Sandbox } from '../os/sandbox/sandbox.ts'
import { bootId } from '../os/system/process-identity.ts'
import { version } from '../os/system/version.ts'
import type { Config, Resolved } from './config/config.ts'
import { labLimitsOf } from './config/lab-limits.ts'
import { groupOf } from './config/settings.ts'
import { protectionText } from './doctor/confinement.ts'
import { callerIsLocal, callerMayExecute, callerName } from './http/caller.ts'
import { hostMetrics } from './metrics/metrics.ts'

export interface NodeAgentOptions {
  readonly config: Config
  readonly log: Log
  /** Default: the records of the data directory; failures to save them reach no feed. */
  readonly records?: ServiceRecords
  readonly diagnose: (settings: Resolved, signal?: AbortSignal) => Promise<Diagnosis>
  /** See `DriverHost.timeouts`. */
  readonly timeouts?: KindTimeouts
}

/** What the service before left open. */
export type ReopenedProjects = { readonly projects: number; readonly runningNodes: number }

export interface NodeAgentService {
  readonly agent: LocalHostAgent
  /** The drivers of hypervisors. They close with the agent. */
  readonly drivers: Drivers
  /** Resolves when each project of the service before is open again, or has failed to open. */
  readonly reopened: Promise<ReopenedProjects>
  /** Whether a path is inside the directories of images of a kind. */
  readonly isImage: (kind: ImageKindName, path: string) => Promise<boolean>
  /** Stops the nodes and the keeper, unless `on_exit` is keep. */
  close(): Promise<void>
}

const imageUser = (node: EngineNode): ImageUser => ({
  kind: node.record.kind,
  name: node.record.name,
  project_id: node.projectId,
  projectPath: node.projectPath,
  images: node.kind.images?.(node) ?? [],
})

/** The host agent of this machine. It reopens the projects of the service before in the background (`reopened`). */
export async function createNodeAgent(options: NodeAgentOptions): Promise<NodeAgentService> {
  const { config, log, diagnose } = options
  const { data, limits, console_host } = config.current
  const isLocal = () => callerIsLocal(config)
  const projectsDirectory = join(data, 'projects')
  const runDirectory = join(data, 'run')
  await Promise.all([data, projectsDirectory, runDirectory].map(makeDirectory))

  const minFreeMb = () => config.current.min_free_space_mb
  const records = options.records ?? (await ServiceRecords.open({ data, minFreeMb, log }))
  const meter = new LoadMeter()
  const events = new EventLog(
    { history: limits.history, feeds: () => config.current.limits.feeds },
    () => meter.read(),
    callerName,
  )
  const { console_port_range, vnc_port_range, udp_port_range } = config.current
  const ranges = { console: console_port_range, vnc: vnc_port_range, udp: udp_port_range }
  const ports = new PortAllocator({ ranges, consoleHost: console_host })
  const keeper = new KeeperLink(data, log)
  const checksums = new Checksums()
  const sandbox = new Sandbox({ settings: () => config.current, isLocal, runDirectory })
  if (!config.current.local) void logProtection(sandbox, config.current, log)
  const table = new NodeTable(log)
  const emit = (node: EngineNode, payload: EventPayload) => events.emit(node.projectId, payload)
  const interfaceRules = () => ({ patterns: config.current.allowed_interfaces, isLocal: isLocal() })
  const udpPeers = () => config.current.udp_peers
  const direct = new DirectLinks({
    keeper,
    ports,
    table,
    project: (id) => projects.find(id),
    emit: (project, payload) => events.emit(project.id, payload),
  })
  const links = new Links({ keeper, ports, direct, interfaces: interfaceRules, udpPeers, emit })
  const captures = new Captures(keeper, links, minFreeMb)
  const listening = new ConsoleListeners({
    keeper,
    ports,
    consoleHost: console_host,
    replay: () => config.current.console_replay,
    emit,
  })
  const lifecycle = new NodeLifecycle({
    keeper,
    links,
    listening,
    emit,
    runsAlways: ({ isAlwaysOn, gns3 }) =>
      isAlwaysOn === true || (config.current.clients === 'gns3' && gns3?.runsAlways === true),
  })
  const consoles = new Consoles({ keeper, ports, listening, consoleHost: console_host })
  const waits = new NodeWaits(consoles, keeper)
  /** Nodes with a queued refresh. A guest may report thousands of changes before the refresh runs. */
  const refreshing = new WeakSet<EngineNode>()
  const listener: KindListener = {
    changed(key) {
      const reported = table.get(key)
      if (reported === undefined || refreshing.has(reported)) return
      refreshing.add(reported)
      table.queue(key, (node) => {
        refreshing.delete(node)
        return lifecycle.refresh(node)
      })
    },
    updated: (key) =>
      table.queue(key, async (node) => {
        await node.save()
        emit(node, node.updated())
      }),
    happened: (key, payload) => {
      const node = table.get(key)
      if (node !== undefined) emit(node, payload)
    },
    warned: (key, message) =>
      table.queue(key, async (node) => {
        emit(node, { type: 'log.warning', message: `${node.record.name}: ${message}` })
        await lifecycle.warnOfStart(node, message)
      }),
    queued: (key, run) => table.queue(key, run),
  }
  const images = new Images({
    sandbox,
    records,
    additional: () => config.current.additional_images_path,
    isLocal,
    isImage: isImageOf,
    checksums,
    minFreeMb,
    maxGb: () => config.current.limits.image_gb,
    bodyTimeoutMs: limits.body_timeout_ms,
    listedExecutables: () => config.current.executables,
    mayExecute: callerMayExecute,
    nodes: () => [...table.values()].map(imageUser),
  })
  await images.open()
  const drivers = createDrivers(() => config.current.hypervisor, runDirectory, log)
  const kinds = await openKinds({
    isLocal,
    sandbox,
    images,
    ports,
    keeper,
    drivers,
    runDirectory,
    minFreeMb,
    listener,
    log,
    interfaces: interfaceRules,
    udpPeers,
    consoleHost: console_host,
    settingsOf: (kind) => groupOf(config.current, kind),
    timeouts: options.timeouts,
    nodes: () => table.values(),
  })
  const kindsByName = new Map(Object.entries(kinds))
  const rules = { dataDirectory: data, projectsDirectory, isLocal }
  const projects = new Projects({ rules, minFreeMb, limits: labLimitsOf(config), events, ports, log })
  const project = (id: string) => projects.find(id)
  const nodes = new Nodes({
    table,
    kinds,
    project,
    ports,
    links,
    direct,
    captures,
    lifecycle,
    consoles,
    waits,
    minFreeMb,
    emit,
    limits: labLimitsOf(config),
    troubleOf: (key) => keeper.troubleOf(key),
  })
  const { opening, reaper, reconciliation } = createRecovery({
    table,
    kinds,
    keeper,
    ports,
    links,
    direct,
    lifecycle,
    listening,
    nodes,
    log,
    finishProjects: () => projects.finish(),
    emit: (project, payload) => events.emit(project.id, payload),
  })
  keeper.listen({
    onUnitExit(key, run, exit) {
      lifecycle.recordExit(key, run)
      table.queue(key, (node) => lifecycle.onUnitExit(node, run, exit))
    },
    captureFailed(key, file, message) {
      const node = table.get(key.split('/')[0] ?? '')
      if (node === undefined) return
      const what = `The capture of ${node.record.name} into ${basename(file)} ended: ${message}`
      events.emit(node.projectId, { type: 'log.error', message: what })
    },
    looped({ key, mac, vlan, port_numbers: [one, other] }) {
      const node = table.get(key)
      if (node === undefined) return
      const where = one === other ? `port ${one}` : `ports ${one} and ${other} in turn`
      const message = `${node.record.name}: there is a loop: frames of ${mac} (VLAN ${vlan}) come in at ${where}; remove a link`
      emit(node, { type: 'log.warning', message })
    },
    onKeeperDeath: (isHeld, isOwn) => reconciliation.onKeeperDeath(isHeld, isOwn),
    onUnresponsive: (why) => reconciliation.onUnresponsive(why),
    answered: () => reconciliation.answered(),
    moved: (keys) => reconciliation.moved(keys),
  })
  const requireKnown = (project: OpenProject) => nodes.requireKnown(project)
  const snapshots = new ProjectSnapshots({ projects, table, lifecycle, requireKnown, minFreeMb })
  const files = new ProjectFiles({
    project,
    checksums,
    minFreeMb,
    bodyTimeoutMs: limits.body_timeout_ms,
    gather: (project) => gatherFiles(project, table),
  })
  // A project that cannot be opened again must not stop the other projects or the service.
  const restored = projects
    .restore({
      open: (project, isUnclaimed) => opening.openNodes(project, isUnclaimed).then(() => snapshots.recover(project)),
      end: (path) => reaper.endNodes(path),
      leave: (path) => reaper.leaveNodes(path),
      commit: (project) => nodes.commitProject(project),
      filesRemoved: async (kind, nodeId) => kindsByName.get(kind)?.cleanup?.onFilesRemoved?.(nodeId),
      close: (project, how) => nodes.closeProject(project, how),
      requireKnown,
    })
    .then(() => reaper.reapOrphans())
    .catch((error: unknown) => log.error({ err: error }, 'not everything that was open could be opened again'))

  const agent: LocalHostAgent = {
    projects,
    files,
    images,
    nodes,
    links: direct,
    linkChecks: new LinkChecks({ ports, addresses: () => config.current.join.addresses }),
    snapshots,
    events: {
      async open(options) {
        if (options.projectId !== undefined) await projects.find(options.projectId)
        return events.open(options)
      },
    },
    host: {
      version: async () => ({ version, local: isLocal() }),
      capabilities: async () => ({
        version,
        platform: platform(),
        node_types: nodeKinds.filter(isLinkable),
        packet_path: await keeper.packetPath(),
        labels: [
          ...(await Promise.all(Object.values(kinds).map((kind) => kind.labels?.() ?? []))).flat(),
          `arch=${machine()}`,
          `platform=${platform()}`,
        ],
        boot_id: bootId(),
        ...Object.assign({}, ...(await Promise.all(Object.values(kinds).map((kind) => kind.capabilities?.())))),
      }),
      interfaces: async () => allowedInterfaces(interfaceRules()),
      ports: async () => ({
        console_port_range,
        console_ports: ports.used('console'),
        vnc_port_range,
        vnc_ports: ports.used('vnc'),
        udp_port_range,
        udp_ports: ports.used('udp'),
      }),
      load: () => hostLoad(meter.read(), projectsDirectory),
      metrics: () => hostMetrics({ version, projects, nodes: table, events, ports, keeper }),
      doctor: (signal) => diagnose(config.current, signal),
      async reloadConfig() {
        if (!isLocal()) throw forbidden('The configuration can only be reloaded in local mode')
        return config.reload()
      },
      action: async (kind, name, input) => namedAction(kinds[kind].computeActions, name)(input as never),
    },
  }
  const reopened = restored.then(async () => ({
    projects: (await projects.list('open')).length,
    runningNodes: [...table.values()].filter(({ status }) => status !== 'stopped').length,
  }))
  return {
    agent,
    drivers,
    reopened,
    isImage: (kind, path) => images.library.isInside(kind, path),
    async close() {
      const stop = config.current.on_exit === 'stop'
      events.close()
      // The nodes of projects that are still being opened must be stopped too.
      await restored
      await Promise.all(Object.values(kinds).map((kind) => kind.onClosing?.()))
      if (stop) {
        const running = [...table.values()].filter(({ status }) => status !== 'stopped')
        for (const node of running) lifecycle.skipGracePeriod(node)
        await Promise.all(
          running.map((node) =>
            table
              .lock(node.key, () => lifecycle.stop(node, 'close'))
              .catch((err: unknown) =>
                log.error({ err, node: node.key }, 'a node could not be stopped: its keeper ends it'),
              ),
          ),
        )
      }
      await keeper.close({ stop })
      await Promise.all(Object.values(kinds).map((kind) => kind.onClosed?.()))
      await images.close()
      await checksums.close()
    },
  }
}

/** Logs at the start of a service outside local mode what confines its emulators. */
async function logProtection(sandbox: Sandbox, settings: Resolved, log: Log): Promise<void> {
  const found: FoundProtection =
    settings.sandbox === 'off' ? { reason: 'the setting sandbox is off' } : await sandbox.find()
  if ('protection' in found) return log.info({}, `Emulators are confined: ${protectionText(found.protection)}`)
  if (settings.require_sandbox)
    log.error({}, `No emulator will run (require_sandbox), because nothing confines it: ${found.reason}`)
  else log.warn({}, `Emulators run without confinement: ${found.reason}`)
}
