import { ApiError } from '../../lib/errors/api-error.ts'
import { Revert } from '../../lib/revert.ts'
import type { LabEvent } from '../../model/lab/event.ts'
import type { ComputeAgents } from '../computes/agents.ts'
import { Changes, type LinkRecord, type NodeRecord, type ProjectLastApplied } from '../lab/document.ts'
import type { UndoGroup } from '../lab/history.ts'
import type { Lab } from '../lab/lab.ts'
import { runNodeAction } from '../nodes/nodes.ts'
import type { Labs } from '../service.ts'
import type { PreparedPlan } from './prepare.ts'

/** Who applies a file, and what was prepared for it. */
export interface ApplyInput {
  readonly prepared: PreparedPlan
  readonly by: string
  /** The project was made for it: a failure deletes the project again. */
  readonly isNew?: boolean
}

/** Members of a record that get other values. */
type Changed =
  | { readonly node: string; readonly set: Partial<NodeRecord> }
  | { readonly link: string; readonly set: Partial<LinkRecord> }
  | { readonly lastApplied: ProjectLastApplied }

/** What the steps of an apply share. */
export class ApplyContext {
  readonly labs: Labs
  readonly lab: Lab
  readonly agentFor: ComputeAgents
  readonly by: string
  /** The edits of all steps: what they change in the document is reverted together. */
  readonly undoGroup: UndoGroup
  /** Reverts changes that are not in the document. */
  readonly revert = new Revert((error) => this.noteUnreverted(error))
  /** Why changes could not be reverted. */
  readonly unreverted: string[] = []
  /** Ids of nodes that steps have stopped. */
  readonly stopped = new Set<string>()
  prepared: PreparedPlan
  jobId = ''
  signal = new AbortController().signal

  constructor(labs: Labs, lab: Lab, { prepared, by }: ApplyInput, agentFor: ComputeAgents) {
    this.labs = labs
    this.lab = lab
    this.by = by
    this.agentFor = agentFor
    this.undoGroup = { by: 'edit', consoles: new Set(), madeBy: lab.caller }
    this.prepared = prepared
  }

  isRunning(id: string): boolean {
    return (this.lab.reported.get(id)?.status ?? 'stopped') !== 'stopped'
  }

  /** Stops a running node, and records it: after a crash of the service, its next start starts the node. */
  async stop(id: string): Promise<void> {
    if (!this.isRunning(id)) return
    this.stopped.add(id)
    const lastApplied = { by: this.by, pendingApply: { job_id: this.jobId, stopped: [...this.stopped] } }
    await this.write([{ lastApplied }], { by: 'rollback' }, false)
    await runNodeAction(this.labs, this.lab, this.lab.node(id), 'stop', this.agentFor)
  }

  /** Changes members of records that still exist, and emits their events unless only what was applied has changed. */
  async write(changed: readonly Changed[], undoGroup: UndoGroup = this.undoGroup, isTold = true): Promise<void> {
    if (changed.length === 0) return
    const lab = this.lab
    await lab.edit(({ project, nodes, links }) => {
      const changes = new Changes()
      const news: (() => LabEvent)[] = []
      for (const it of changed) {
        if ('lastApplied' in it) changes.project({ ...project, lastApplied: it.lastApplied })
        else if ('node' in it) {
          const now = nodes.get(it.node)
          if (now === undefined) continue
          const next = { ...now, ...it.set }
          changes.put('node', it.node, next)
          news.push(() => ({ action: 'node.updated', event: lab.nodeView(next) }))
        } else {
          const now = links.get(it.link)
          if (now === undefined) continue
          const next = { ...now, ...it.set }
          changes.put('link', it.link, next)
          news.push(() => ({ action: 'link.updated', event: lab.linkView(next) }))
        }
      }
      return { changes, news: () => (isTold ? news.map((newsOf) => newsOf()) : []), result: undefined }
    }, undoGroup)
  }

  /** Notes a change that could not be reverted. */
  noteUnreverted(error: unknown): void {
    this.reportDefect(error, 'could not be reverted')
    this.unreverted.push((error as Error).message)
  }

  /** Logs an error that is not a refusal. After a cancel every request that was under way fails. */
  reportDefect(error: unknown, what: string): void {
    if (!(error instanceof ApiError) && !this.signal.aborted)
      this.labs.report(error, `a step of the job ${this.jobId} (apply) ${what}`)
  }
}
