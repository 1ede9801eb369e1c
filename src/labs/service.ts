import type { EventLog } from '../fleet/events/event-log.ts'
import type { LabEvent } from '../model/lab/event.ts'
import { LabAccess } from './access.ts'
import { exportLab } from './archives/archive.ts'
import type { ArchiveStore } from './archives/archive-store.ts'
import type { CopyLab } from './archives/duplicate.ts'
import { type ArchiveSource, LabArchives } from './archives/lab-archives.ts'
import type { HostProjects, ZipArchives } from './archives/zip-archives.ts'
import { AutoStart } from './autostart.ts'
import type { LabCatalog } from './catalog.ts'
import { workOnStudentLab } from './classes/student-lab.ts'
import { ComputeParts, type LabRecovery } from './compute-parts.ts'
import { serviceAgents } from './computes/compute-pool.ts'
import { LabCreation } from './creation.ts'
import { LabDocuments } from './documents.ts'
import { Jobs } from './jobs/jobs.ts'
import { recordStorage } from './lab/document-codec.ts'
import type { Lab } from './lab/lab.ts'
import type { LabLimits } from './lab/lab-limits.ts'
import type { LabStorage } from './lab/store.ts'
import { LabUses } from './lab-uses.ts'
import { LabLifecycle } from './lifecycle.ts'
import { LabLists } from './lists.ts'
import { forgetOn, moveLab, recoverMove } from './moves/move.ts'
import type { FileTrust } from './plan/trust.ts'
import { LabSettings } from './settings.ts'
import { recoverSnapshots } from './snapshots/snapshots.ts'
import type { ComputeSync, SyncOptions } from './sync.ts'
import { LabTimers } from './timers.ts'

/** What is in the archives of closed labs. */
const archiveOptions = { withImages: false, withSnapshots: true, resetsAddresses: false, withChecks: true, level: 1 }

/** What a runtime gives to labs. */
export interface LabPorts {
  readonly store: LabStorage
  readonly events: EventLog<LabEvent>
  /** Absent: there are no archives here. */
  readonly zip?: ZipArchives | undefined
  /** Absent: files are not judged, as no compute of the service is in local mode for it. */
  readonly trust?: FileTrust | undefined
  /** Absent: this service has no disk, or its computes have the projects. */
  readonly hostProjects?: HostProjects | undefined
  /** Absent: closed labs are not archived. */
  readonly archiveStore?: ArchiveStore | undefined
  /** Copies a lab in the process of the new lab; absent: this process has both. */
  readonly copy?: CopyLab | undefined
  /** Takes note of the next time at which `timers.runDue` must be called, ms since 1970, for a process that sleeps until it is asked. */
  readonly wakeAt?: ((time: number) => void) | undefined
  /** How long a drain of a compute may take, s; absent: `defaultDrainS`. */
  readonly drainS?: (() => number) | undefined
  /** How much clients can store. Read for each change. */
  readonly limits: () => LabLimits
  /** Logs a message for the administrator. */
  readonly warn: (message: string) => void
  /** Logs failures that are defects. */
  readonly report: (error: unknown, what: string) => void
}

/** What differs between a service that has all its labs in one process and the process of a single lab. */
interface LabProcess extends Pick<LabCatalog, 'registry' | 'computes' | 'templates' | 'symbols'> {
  /** Keeps open labs in step with their computes. */
  readonly syncOf: (following: SyncOptions) => ComputeSync
  /** Called with the lab of each new job, and with undefined at its removal, for a process that lists the jobs of all labs. */
  readonly noteJob?: (jobId: string, projectId: string | undefined) => Promise<void>
}

/**
 * The labs that run in this process, and what works on them. A lab is a project in `/v2/projects`, in its record and in events: `project_id`,
 * `lab.document.project`, `project.closed`. A compute has a project of the same id, the part of the lab that is there (`parts`).
 */
export interface Labs extends LabCatalog, Omit<LabPorts, 'store' | 'wakeAt'> {
  readonly documents: LabDocuments
  readonly access: LabAccess
  readonly archives: LabArchives
  readonly creation: LabCreation
  readonly lifecycle: LabLifecycle
  readonly lists: LabLists
  /** Their parts on computes, where each is a project. */
  readonly parts: ComputeParts
  readonly settings: LabSettings
  readonly sync: ComputeSync
  readonly timers: LabTimers
  readonly uses: LabUses
  /** Finds an open lab; see `LabAccess.lab`. */
  lab(idOrName: string): Promise<Lab>
  /** Finds an open or closed lab; see `LabAccess.find`. */
  find(idOrName: string): Promise<Lab>
  /** Ends jobs and feeds. */
  shutdown(): Promise<void>
}

/** Puts labs together. `lifecycle.reopenAfterStart` opens those that were open before. */
export function createLabs(ports: LabPorts, { registry, computes, templates, symbols, ...own }: LabProcess): Labs {
  const { store, events, zip, trust, hostProjects, archiveStore, copy, wakeAt, drainS, limits, warn, report } = ports
  const ownAgents = serviceAgents(computes)
  const documents = new LabDocuments({ store: recordStorage(store), events, registry, limits })
  const jobs = new Jobs({ computes, report, noted: own.noteJob, emit: (event) => registry.emit(event) })
  const autoStart = new AutoStart(jobs, warn)
  const sync = own.syncOf({ registry, documents, computes, events, autoStart })
  const access = new LabAccess(registry, documents, sync)
  // `recovery` and `source` need all of `labs`, which is there before they are called.
  const recovery: LabRecovery = {
    recoverSnapshots: (lab, agentFor) => recoverSnapshots(labs, lab, agentFor),
    recoverMove: (lab, agentFor) => recoverMove(labs, lab, agentFor),
    forgetOn: (lab, computeId, agentFor) => forgetOn(labs, lab, computeId, agentFor),
  }
  const source: ArchiveSource = {
    contentOf: (lab, maxBytes) => exportLab(labs, lab, { ...archiveOptions, maxBytes }, ownAgents),
  }
  const archives = new LabArchives({ registry, documents, access, source, store: archiveStore, warn })
  const parts = new ComputeParts({ documents, computes, events, sync, recovery })
  const shared = { registry, documents, access, computes, jobs, autoStart, sync, archives, parts, recovery, warn }
  const lists = new LabLists(shared)
  const creation = new LabCreation(shared)
  const lifecycle = new LabLifecycle({ ...shared, creation, lists })
  const timers = new LabTimers({ ...shared, agentFor: ownAgents, wakeAt, remover: lifecycle })
  const settings = new LabSettings({ ...shared, timers, lists })
  const uses = new LabUses({ ...shared, lifecycle, agentFor: ownAgents })
  const labs: Labs = {
    registry,
    computes,
    templates,
    symbols,
    trust,
    drainS,
    jobs,
    allJobs: jobs,
    events,
    zip,
    hostProjects,
    archiveStore,
    copy,
    limits,
    warn,
    report,
    documents,
    access,
    archives,
    creation,
    lifecycle,
    lists,
    parts,
    settings,
    sync,
    timers,
    uses,
    lab: (idOrName) => access.lab(idOrName),
    find: (idOrName) => access.find(idOrName),
    cleanedUp: () => access.reopened,
    list: (agentFor) => lists.list(agentFor),
    move: (id, from, options) => moveLab(labs, id, from, options),
    workOnStudentLab: (id, work, by) => workOnStudentLab(labs, id, work, by),
    async shutdown() {
      sync.end()
      timers.end()
      for (const lab of documents.open()) {
        jobs.cancelAllOf(lab.id, 'The service has stopped')
        lab.closing.abort()
      }
      jobs.cancelAllOf(undefined, 'The service has stopped')
      uses.end()
      events.close()
      await autoStart.end()
    },
  }
  return labs
}
