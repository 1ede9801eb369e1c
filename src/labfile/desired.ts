import type { PortForward } from '../model/kinds/nat-guests.ts'
import type { NodeKindName } from '../model/kinds/node.ts'
import type { LabNode, LabReady } from '../model/lab/node.ts'
import type { LabCheck } from '../model/lab/task.ts'
import type { Placement } from '../model/placement.ts'
import type { Filters } from '../model/schema/filters.ts'
import type { Position } from './position.ts'

/**
 * The normal form of a lab file: templates, variables, units, port names and segments are resolved, and all that the file says was
 * checked. An absent member was not in the file. Members `at` and `keys` have positions, for messages; they say nothing of the lab.
 */
export interface Desired {
  /** Name of the lab, and of its project. */
  readonly lab: string
  /** Id of a project that is made for the lab: a UUIDv5 of its name (`ids.ts`). */
  readonly project_id: string
  readonly about?: string
  /** The nodes in the order of the file, then the segments in theirs: a segment is a node of kind switch, hub, nat or cloud. */
  readonly nodes: readonly DesiredNode[]
  /** The members of the segments in their order, then the links in theirs. */
  readonly links: readonly DesiredLink[]
  /** The name of the nat that is the management network; its links are those with `isManagement`. Absent: there is none. */
  readonly management?: string
  readonly starting: DesiredStarting
  readonly checks: readonly DesiredCheck[]
  /** Absent: the file says nothing of tasks, and the lab keeps those that it has. */
  readonly tasks?: readonly DesiredTask[]
  /** The key `lab`. */
  readonly at: Position
}

/** A node, or a segment. */
export interface DesiredNode {
  /** Unique in the lab without regard to case; never the form of an id, without `:` and `/`. */
  readonly name: string
  /** Id of the node when it is created: a UUIDv5 of the names of lab and node. One that was renamed by `was` has another one. */
  readonly node_id: string
  /** The earlier name: the node of that name, when there is one, gets this name and stays the same node. */
  readonly was?: string
  readonly kind: NodeKindName
  /** Id or name of its compute: its own, else that of the lab. */
  readonly compute_id?: string
  /** Members of the node in a lab that the file gives. Absent: the default of the schema (`mapFields`). */
  readonly settings: DesiredSettings
  /**
   * Members of the create schema of its kind that the file gives; without name, id, configurations, those of `settings`, and
   * `ports_mapping`. `image` is among them, as `path`, `image` or `hda_disk_image`. Absent: the default of the schema.
   */
  readonly properties: Readonly<Record<string, unknown>>
  /** The digest that `image` of the file asks for: the image of that name must have it. */
  readonly imageDigest?: WantedDigest
  /** Configurations by their name in `configs` of the descriptor of the kind: `startup`, `private`. */
  readonly configs: Readonly<Record<string, DesiredConfig>>
  /** A CD that is made for the machine when it is created; a change of it recreates the machine. */
  readonly day0?: DesiredDay0
  /** Texts that users gave the node, by key. */
  readonly labels: Readonly<Record<string, string>>
  /** How its compute is chosen when it names none, with what the file says for all nodes. Absent: by room. */
  readonly placement?: Placement
  /** Whether `up` starts it. Always true for a segment. */
  readonly start: boolean
  /** Names of nodes, as these are written in `nodes`, that must be ready before it starts; without a cycle. */
  readonly after: readonly string[]
  /** When it is ready. Absent: when it is started. */
  readonly ready?: DesiredReady
  /** Present for a node in the management network. Its settings have what follows from it. */
  readonly management?: DesiredManagement
  /** Present for a segment. */
  readonly segment?: DesiredSegment
  /** Its key in `nodes` or `segments`. */
  readonly at: Position
  /** The values of its keys, by key; also those that come from a template. */
  readonly keys: Readonly<Record<string, Position>>
}

/** Members that `LabNodeCreate` and `LabNodeUpdate` take beside the properties of the kind. */
export interface DesiredSettings {
  readonly x?: number
  readonly y?: number
  readonly symbol?: string
  readonly console?: number
  readonly console_type?: string
  /** From `ports` as a pattern: `Gi0/{1-}` is `Gi0/{port1}` here. */
  readonly port_name_format?: string
  /** From `custom_adapters`, with the names of `ports` as a list. */
  readonly custom_adapters?: LabNode['custom_adapters']
}

/** In lower case. */
export interface WantedDigest {
  readonly algorithm: 'sha256' | 'md5'
  readonly hex: string
}

/** The text of a configuration. */
export interface DesiredConfig {
  readonly text: string
  /** SHA-256 of the text in lower-case hexadecimal digits, as in the entity tags of `.../config`. */
  readonly digest: string
  /** The path of the file that it comes from, as the lab file writes it; absent for a text in the lab file. */
  readonly file?: string
  readonly at: Position
}

/** The content of a CD or disk for the first boot of a machine. */
export interface DesiredDay0 {
  readonly medium: 'cd' | 'disk'
  /** Name of the volume, such as `cidata` (cloud-init, NoCloud) or `config-2` (OpenStack). */
  readonly label: string
  /** Content by name; a name may have directories, such as `openstack/latest/user_data`. */
  readonly files: Readonly<Record<string, DesiredConfig>>
  /** SHA-256 of medium, label, names and contents: equal for an equal one. */
  readonly digest: string
  readonly at: Position
}

/** All given conditions must hold. `press` is typed once a second until `console` matches. */
export interface DesiredReady extends LabReady {
  readonly press?: string
}

/** How a node is in the management network. */
export interface DesiredManagement {
  /** Empty while the file is being read: addresses are chosen when all nodes are known. */
  readonly address: string
  /** Whether the file gives the address; otherwise it follows from the name. */
  readonly isGiven: boolean
  /** Ports of the host that lead to the node. */
  readonly ports: readonly Omit<PortForward, 'guest_address'>[]
}

/** What only segments have. */
interface DesiredSegment {
  /** Settings of every port: of a cloud with `device` its type and device. */
  readonly everyPort: SegmentPort
  /** Settings of single ports by number, from `ports` of the file. */
  readonly ports: Readonly<Record<number, SegmentPort>>
}

/**
 * Settings of a port of a segment, as members of `ports_mapping` of its kind. A port is
 * `{ port_number, ...everyPort, ...ports[port_number], ...port of the end of its link }`.
 */
export type SegmentPort = Readonly<Record<string, unknown>>

/** A link, or a member of a segment. */
export interface DesiredLink {
  /** Unique in the lab without regard to case. */
  readonly name?: string
  /** Of a member: the member's end, then the port of its segment. */
  readonly ends: readonly [DesiredEnd, DesiredEnd]
  readonly link_type: 'ethernet' | 'serial'
  /** All that impairs frames from the first end to the second, in the order of `filterRows`, without filters that are off. */
  readonly filters_ab: Filters
  /** The same from the second end to the first. */
  readonly filters_ba: Filters
  /** `down`: the link drops all frames. */
  readonly suspend: boolean
  /** A capture that runs as long as the link is there. */
  readonly capture?: DesiredCapture
  /** The segment whose member it is; absent for an entry of `links`. */
  readonly memberOf?: string
  /** Whether it is the link of a node to the management network: the file has no entry for it. */
  readonly isManagement?: boolean
  readonly at: Position
  readonly keys: Readonly<Record<string, Position>>
}

/** An end of a link. */
export interface DesiredEnd {
  /** Name of a node or a segment, as its key is written. */
  readonly node: string
  readonly adapter_number: number
  /**
   * Undefined: the port of a segment that the link has already, else the lowest free one; ports with a number are given first, then
   * those of links that are there, then the others in the order of `links`.
   */
  readonly port_number: number | undefined
  /** For a port of a segment: its settings, such as its VLAN. */
  readonly port?: SegmentPort
  readonly at: Position
}

interface DesiredCapture {
  /** Absent: a name from the ends of the link. */
  readonly file?: string
}

export interface DesiredStarting {
  /** Most nodes that start at the same time. Absent: as the load allows. */
  readonly at_once?: number
  /** Percent of the processors above which no further node is started. Absent: as the service paces starts. */
  readonly load_below?: number
  /** When a node is not ready in time. `stop`: start nothing further; `go-on`: leave out only what comes after it. */
  readonly give_up: 'stop' | 'go-on'
}

/** A task beside the map. */
export interface DesiredTask {
  /** Unique in the lab without regard to case. */
  readonly name: string
  /** Markdown. */
  readonly text: string
  /** Names of checks as these are written. Empty: the task is only read, and has no part in the score. */
  readonly checks: readonly string[]
  readonly points: number
}

/** A check of `patchbay test`. */
export type DesiredCheck = LabCheck & { readonly at: Position }
