import type { DesiredNode } from '../../labfile/desired.ts'
import type { LabNodeNotCreated } from '../../model/lab/node.ts'
import type { LabTasksRecord } from '../../model/lab/task.ts'
import type { LabPlanStep, LabWithheldStep } from '../../model/lab/topology.ts'
import type { Filters } from '../../model/schema/filters.ts'
import type { LinkRecord, NodeRecord, ProjectRecord } from '../lab/document.ts'

/** A lab as it is. */
export interface Actual {
  readonly project: ProjectRecord
  readonly nodes: ReadonlyMap<string, NodeRecord>
  readonly links: ReadonlyMap<string, LinkRecord>
  /** Ids of the nodes that are not stopped. */
  readonly running: ReadonlySet<string>
  /** Ids of those that were started, and have not been seen to be ready. */
  readonly unready?: ReadonlySet<string>
  readonly tasks?: LabTasksRecord | undefined
  /** Digests of the configurations of nodes, by id and name. Absent: the configuration could not be read. */
  readonly configs: ReadonlyMap<string, Readonly<Record<string, string>>>
}

/** What a plan may do beside changes that disturb nothing. */
export interface PlanOptions {
  readonly restart?: boolean
  readonly recreate?: boolean
  readonly delete_extra?: boolean
  readonly config_from_file?: boolean
  /** Whether objects that the file names count as made from it from now on, whoever made them. */
  readonly take_over?: boolean
  /** Whether a node whose image is missing becomes a placeholder; otherwise the file is refused. */
  readonly partial?: boolean
  /** Whether nodes are started, except those with `start: false` in the file. */
  readonly start?: boolean
  /** Ids of computes, by the words of the file: ids and names. */
  readonly computes?: ReadonlyMap<string, string>
}

/** A link as it is wanted, with the numbers of all ports. The nodes are named, as they may not exist yet. */
export interface WantedLink {
  /** The id of a new link; undefined: any. */
  readonly link_id: string | undefined
  readonly name: string | null
  readonly ends: readonly [WantedEnd, WantedEnd]
  readonly filters: Filters
  readonly filters_ab: Filters
  readonly filters_ba: Filters
  readonly suspend: boolean
  readonly capture: { readonly file?: string } | undefined
}
export interface WantedEnd {
  readonly node: string
  readonly adapter_number: number
  readonly port_number: number
}

/** The settings of a node that the file decides, complete: they replace those of the record. */
export type WantedSettings = Partial<
  Pick<
    NodeRecord,
    | 'x'
    | 'y'
    | 'symbol'
    | 'labels'
    | 'placement'
    | 'after'
    | 'ready'
    | 'port_name_format'
    | 'custom_adapters'
    | 'console'
  >
> & { readonly console_type?: string }

/** A change of a node. */
export interface PlannedChange {
  readonly name?: string
  readonly settings: WantedSettings
  readonly properties: Readonly<Record<string, unknown>>
  /** Names of the configurations that are taken from the file. */
  readonly configs: readonly string[]
}

/** What may differ between a link and the file. */
export type LinkPart = 'impairment' | 'down' | 'up' | 'name' | 'capture'

/** What a step does. */
export type PlanTask =
  | { readonly type: 'project'; readonly name: string }
  /** Undefined: the lab has no tasks any more. */
  | { readonly type: 'tasks'; readonly tasks: Omit<LabTasksRecord, 'by'> | undefined }
  | {
      readonly type: 'create-node'
      readonly want: DesiredNode
      readonly node_id: string | undefined
      readonly change: PlannedChange
      /** Why its compute cannot create it: it becomes a placeholder. */
      readonly creationError?: string
    }
  | {
      readonly type: 'retry-node'
      readonly want: DesiredNode
      readonly node_id: string
      readonly change: PlannedChange
    }
  | {
      readonly type: 'change-node'
      readonly want: DesiredNode
      readonly node_id: string
      readonly change: PlannedChange
      /** Properties that a withheld step changes. */
      readonly held: readonly string[]
      readonly stops: boolean
    }
  | {
      readonly type: 'recreate-node'
      readonly want: DesiredNode
      readonly node_id: string
      readonly change: PlannedChange
    }
  | { readonly type: 'delete-node'; readonly node_id: string }
  /** `isLate`: the link is made after one of its nodes was recreated. */
  | { readonly type: 'create-link'; readonly link: WantedLink; readonly isLate: boolean }
  | {
      readonly type: 'change-link'
      readonly link_id: string
      readonly link: WantedLink
      /** Whether the ends of the link that is there are in the other order. */
      readonly isTurned: boolean
      readonly parts: readonly LinkPart[]
    }
  | { readonly type: 'delete-link'; readonly link_id: string }
  /** Stops a capture that a lab file started. `next`: the one that takes its place. */
  | { readonly type: 'end-capture'; readonly link_id: string; readonly next: WantedLink['capture'] }
  | { readonly type: 'start-node'; readonly name: string }

/** A step with what it does. */
export interface PlannedStep extends LabPlanStep {
  readonly task: PlanTask
}

/** Something that is there and that the file does not decide. */
export interface PlanExtra {
  readonly what: 'node' | 'segment' | 'link' | 'config'
  readonly name: string
  readonly because?: string
}

/** What a part of the plan adds to it. */
export interface PlanPart {
  readonly steps: readonly PlannedStep[]
  /** Steps that need a flag. */
  readonly withheld: readonly LabWithheldStep[]
  readonly extra: readonly PlanExtra[]
}

/** What must be done, in the order in which it is done. */
export interface Plan extends PlanPart {
  /** Nodes that need no step, but a record of what the file says of them, by id. */
  readonly marks: ReadonlyMap<string, DesiredNode>
  /** Links that need no step, and now count as made from the file. */
  readonly linksToMark: readonly string[]
  /** The nodes that are placeholders after it. */
  readonly cannotRun: readonly LabNodeNotCreated[]
  /** For each node of the file the node of the lab that it describes. */
  readonly found: ReadonlyMap<DesiredNode, NodeRecord>
}

/** A step of this task. */
export const stepOf = (step: LabPlanStep, task: PlanTask): PlannedStep => ({ ...step, task })

/** The option that a withheld step needs. */
export type PlanFlag = LabWithheldStep['flag']

/** The id of the compute that the file names for a node; undefined: it names none. */
export const wantedCompute = (
  { compute_id }: DesiredNode,
  { computes }: Pick<PlanOptions, 'computes'>,
): string | undefined => (compute_id ? (computes?.get(compute_id) ?? compute_id) : undefined)
