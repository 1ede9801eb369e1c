import type { Static, TObject, TProperties, TSchema } from '@sinclair/typebox'
import type { Role } from '../access/access-token.ts'
import type { LineType } from '../capture.ts'
import type { Nio } from '../schema/nio.ts'
import type { HostAccess } from './host-access.ts'
import type { PortsFor } from './segment.ts'
import type { KindV1 } from './v1.ts'

export type ApiVersion = 'v1' | 'v2'

/** An operation that only one kind has, on a node or on a compute, and its endpoint. */
export interface Action<I extends TObject = TObject, O extends TSchema = TSchema> {
  readonly method: 'GET' | 'POST'
  /** Below the path of the node, or of the kind. */
  readonly path: string
  /** Below the path of the node of a lab. Absent: labs do not offer the action. */
  readonly labPath?: string
  readonly summary: string
  readonly description?: string
  /** API versions with the action. Default: both. */
  readonly versions?: readonly ApiVersion[]
  /** Default: `read` for GET, `operate` for POST. */
  readonly role?: Role
  /** Group of the endpoint in the reference. Default: that of the nodes. */
  readonly group?: 'tools'
  /** A GET takes its lists in the query, separated by commas; a body is for older clients. */
  readonly input?: I
  /** The query of a GET in the reference. */
  readonly query?: TObject
  /** Absent: the answer has no body. */
  readonly output?: O
  readonly answer: { readonly status?: 201; readonly description: string }
  readonly errors?: Readonly<Record<number, string>>
  /** The action takes longer than a read: its client uses a longer timeout. */
  readonly isSlow?: boolean
  /** A second endpoint in v1 with the same output in an older form. */
  readonly v1Form?: {
    readonly path: string
    readonly summary: string
    readonly description: string
    readonly schema: TSchema
    toView(output: Static<O>): unknown
  }
}

/** An action of a compute that runs the kind. */
export interface ComputeAction<I extends TObject = TObject, O extends TSchema = TSchema> extends Action<I, O> {
  /** The answer of a gateway, from those of its computes. */
  merge(outputs: readonly Static<O>[]): Static<O>
}

/** A kind in release 2.2 of GNS3. With `clients = "gns3"` requests and answers are translated by this table. */
export interface Gns3Kind {
  /** The name of the kind in paths, bodies, templates, and below `project-files`. */
  readonly nodeType: string
  /** Other names of the kind in archives. */
  readonly otherNodeTypes?: readonly string[]
  /** The members of a node on a compute, beside its id, project, name and status. */
  readonly members: readonly string[]
  /** Settings that GNS3 takes only in a create, or shows only on the controller. */
  readonly settings?: readonly string[]
  /** Members that GNS3 shows and Patchbay lacks, from those of a node. */
  readonly added?: (node: Readonly<Record<string, unknown>>) => Readonly<Record<string, unknown>>
  /** The members of a node, or its settings in an archive, with the names and values of GNS3, from `members` and `settings`. Absent: the same. */
  readonly toGns3?: (given: Readonly<Record<string, unknown>>) => Readonly<Record<string, unknown>>
  /** Members that Patchbay has nothing for, with their defaults: clients see what they sent. */
  readonly keptDefaults?: Readonly<Record<string, unknown>>
  /** Members for Patchbay, from those that a client of GNS3 sent. */
  readonly fromGns3?: (given: Readonly<Record<string, unknown>>) => Readonly<Record<string, unknown>>
  /** The same, only of nodes. */
  readonly ofNode?: (given: Readonly<Record<string, unknown>>) => Readonly<Record<string, unknown>>
  /** The same, only of new nodes: such as a script in place of the name of its file. */
  readonly atCreation?: (given: Readonly<Record<string, unknown>>) => Readonly<Record<string, unknown>>
  /** An image in a list of them. Absent: as for most kinds. */
  readonly image?: (image: Readonly<Record<string, unknown>>) => Readonly<Record<string, unknown>>
  /** The names that its nodes can have in GNS3 3. Absent: any. */
  readonly hostName?: 'rfc1123' | 'ios'
  /** Whether its nodes run from their creation on in GNS3, whose clients do not offer to start them. */
  readonly runsAlways?: boolean
  /** The name and the symbol of the template that every server of GNS3 has. */
  readonly template?: {
    readonly name: string
    readonly symbol: string
    readonly properties?: Readonly<Record<string, unknown>>
    readonly console_type?: string
  }
}

/** A port of a node. */
export interface PortShape {
  readonly adapter: number
  readonly port: number
  /** Default: Ethernet. */
  readonly line?: LineType
  /** Its name, where the kind gives it one. */
  readonly name?: string
  readonly mac_address?: string | null
  readonly adapter_type?: string | null
}

/** `count` adapters with one port each. */
export const adaptersOfOnePort = (count: unknown): readonly PortShape[] =>
  Array.from({ length: typeof count === 'number' ? count : 0 }, (_, adapter) => ({ adapter, port: 0 }))

/**
 * An action of a node on an image alone, at POST /v2/computes/{compute_id}/{path}: the compute makes a node in a temporary
 * project, runs the action of the same name, and removes the project.
 */
export interface ImageAction extends Required<Pick<Action, 'path' | 'summary' | 'description' | 'answer' | 'errors'>> {
  /** Name of the temporary project and its node. */
  readonly projectName: string
  /** What the node is created with; its member `image` names the image. */
  readonly input: TObject
  readonly output: TSchema
}

/** The members and the action by which a configuration is written and read. */
interface ConfigAccess {
  /** The member of an update that takes it. */
  readonly field: string
  /** The path of the action, below that of the node, that shows it in the same member; absent: the node shows it. */
  readonly action?: string
  /** Whether an empty text replaces the configuration; else it changes nothing. */
  readonly keepsEmpty?: boolean
}

/** Settings that a form shows in rows. */
interface FormRows {
  /** What a row is called. */
  readonly noun: string
  /** What the settings of a row are called in it. */
  readonly titles: readonly string[]
  /** The settings of each row; without the first one it is not used. */
  readonly rows: readonly (readonly string[])[]
}

/** A kind of node, for every runtime. `runtime/node/drivers` runs its nodes on a host. */
export interface KindDescriptor {
  /** The name of the kind in paths, records and events. */
  readonly name: string
  /** The word for a node of the kind, within a sentence. */
  readonly noun: string
  /** What people call the kind, with the emulator that they know it by: `QEMU machine`. */
  readonly title: string
  /** What a new node type gets that a node must have, and that was not given. Default: nothing. */
  readonly typeDefaults?: (given: Readonly<Record<string, unknown>>) => Readonly<Record<string, unknown>>
  /** The parts of a form of its settings, in order: title -> settings. A form shows the last part closed. Absent: one part. */
  readonly formParts?: Readonly<Record<string, readonly string[]>>
  /** Settings of parts that come in rows, such as the disks, by the title of the part. */
  readonly formRows?: Readonly<Record<string, FormRows>>
  /** Name of a built-in symbol, for a kind without `template`. Default: `machine`. */
  readonly symbol?: string
  /** The settings that somebody is asked for who makes a node type (a template) of the kind. Absent: none. */
  readonly firstSettings?: readonly string[]
  /** Names of the kind in other programs: hints in errors translate them. */
  readonly aliases?: readonly string[]
  /** Absent: GNS3 has no such kind. */
  readonly gns3?: Gns3Kind
  /** Whether its nodes run from their creation on, until a client stops them: they have no emulator and no image. */
  readonly isAlwaysOn?: boolean
  /** A node as v2 shows it. */
  readonly node: TObject
  readonly create: TObject
  readonly update: TObject
  readonly v1: KindV1
  readonly v2?: {
    /** Whether `start` answers with the node. Default: yes. */
    readonly startShows?: boolean
    /** Adapts the body of an update in v2. */
    changes?(body: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>>
  }
  /** Settings whose change takes effect while a node runs. With `isAlwaysOn`: all. */
  readonly liveFields?: readonly string[]
  /** Names of the settings of a node whose values the node chooses itself. */
  readonly ownValues?: (node: Readonly<Record<string, unknown>>) => readonly string[]
  /** The ports of a node, from its fields, in the order in which people count them. */
  readonly ports?: (node: Readonly<Record<string, unknown>>) => readonly PortShape[]
  /** The ports of a segment of a lab file. For kinds whose nodes can be segments. */
  readonly portsFor?: PortsFor
  /** Whether its ports have VLANs: the members `type`, `vlan` and `ethertype`. */
  readonly hasVlans?: boolean
  /** Whether its ports are devices of the host, so that it is nothing without ports. */
  readonly hasHostPorts?: boolean
  /** Whether its nodes can ping, and have their addresses in the startup configuration. */
  readonly canPing?: boolean
  /** Whether a running node is restarted to get another name. Default: no. */
  readonly renameNeedsRestart?: boolean
  /** What is wrong with settings that fit the schema of a create, with the name of the field first. */
  readonly settingsIssue?: (settings: Readonly<Record<string, unknown>>) => string | undefined
  /** By which of its settings a node runs programs of the host or opens files of it; images apart. Default: by none. */
  readonly hostAccess?: (settings: Readonly<Record<string, unknown>>) => readonly HostAccess[]
  /** The same for a text that is typed on the console of a node; `setting` says where the text is from. Default: nothing. */
  readonly typedHostAccess?: (text: string, setting: string) => readonly HostAccess[]
  /** Whether its nodes say themselves when they are ready: commands run in them, and an image may have one that says it. */
  readonly tellsReady?: boolean
  /** The weight of a start beside other starts on its compute: a machine has 4, the default. */
  readonly startWeight?: number
  /** Whether starts have no weight on a compute, from the command line of a node that it started. */
  readonly startsWithoutWeight?: (command_line: string | null) => boolean
  /** Whether its endpoints are at the beginning of the reference. */
  readonly isShownFirst?: boolean
  /** Present: its nodes can be in the management network of a lab, by their first adapter. `adapters` counts it, too. */
  readonly management?: {
    /** The settings by which it has its address. Absent: it asks for it by DHCP. */
    readonly settings?: (at: {
      readonly address: string
      /** Length of the prefix of the network. */
      readonly prefix: string
      /** Also the resolver. */
      readonly gateway: string
    }) => Readonly<Record<string, unknown>>
  }
  /** Whether the texts of its setting `files` may be in files beside a lab file. */
  readonly hasFiles?: boolean
  /** What is wrong with the MAC addresses that settings give, with the name of the field first. Stored ones may be wrong. */
  readonly addressIssue?: (settings: Readonly<Record<string, unknown>>) => string | undefined
  /** How its ports are named where a lab says nothing else. Default: `Ethernet{0}`. */
  readonly portNameFormat?: string
  /** The template that every lab has for it: for kinds that need no image. */
  readonly template?: {
    readonly name: string
    readonly category: 'guest' | 'router' | 'switch' | 'firewall'
    /** Names of its nodes; `{0}` stands for the next free number. */
    readonly nameFormat: string
    /** Name of a built-in symbol. */
    readonly symbol: string
  }
  /** A MAC address that is not in `taken`. A lab on several computes chooses it: a compute knows its own nodes only. */
  readonly freeMac?: (taken: ReadonlySet<unknown>) => string
  /** The configurations that clients read and write, by name; the first is the default. */
  readonly configs?: Readonly<Record<string, ConfigAccess>>
  /** NIO types of its ports; empty: the nodes have no ports. */
  readonly nioTypes: readonly Nio['type'][]
  /** The possible forms of its console. Empty: its nodes have none; `hub` shows what else such a kind says. */
  readonly consoles: readonly ('text' | 'screen')[]
  /** Whether its nodes can be suspended. */
  readonly canBeSuspended: boolean
  /** Whether a reload resets the node; else it stops and starts the node. Default: `canBeSuspended`. */
  readonly canBeReset?: boolean
  /** Whether `duplicate` exists. Default: yes. */
  readonly canBeCopied?: boolean
  /** Whether starting a running node (v1), resuming one that is not suspended, and resetting a stopped one are 409. */
  readonly isStrict?: boolean
  /** The input of a start. */
  readonly start?: TObject
  /** What 409 means, by request. */
  readonly conflicts: Readonly<Record<'create' | 'update' | 'start', string>>
  /** Present: its nodes start from images. */
  readonly image?: {
    /** The member of a create that names the image from which a node boots. */
    readonly field: string
    /** The directory of its images in archives. Absent: archives have none. */
    readonly archiveDirectory?: string
    /** The images are programs of the host: outside local mode only an administrator may add them. */
    readonly isProgram?: boolean
    /** The images are those of containers, which registries have. */
    readonly isOfRegistry?: boolean
    /** The images are disks: the host can make and enlarge them, and an image may have another as its base. */
    readonly isDisk?: boolean
  }
  /** Actions of a node. */
  readonly actions?: Readonly<Record<string, Action>>
  /** Actions of a compute. */
  readonly computeActions?: Readonly<Record<string, ComputeAction>>
  readonly imageActions?: Readonly<Record<string, ImageAction>>
  /** Members that the kind adds to the capabilities of a compute; a gateway without computes shows their defaults. */
  readonly capabilities?: TProperties
}

/** Has the declared type: else the descriptor would have literal types for all names in the lists. */
export const gns3Kind = (table: Gns3Kind): Gns3Kind => table

/** Keeps the literal types of a descriptor. */
export const kind = <const D extends KindDescriptor>(descriptor: D): D => descriptor

/** Infers the types of an action from its schemas. */
export const action = <I extends TObject, O extends TSchema>(definition: Action<I, O>): Action<I, O> => definition
export const computeAction = <I extends TObject, O extends TSchema>(
  definition: ComputeAction<I, O>,
): ComputeAction<I, O> => definition

/** The action of that name. Throws for an unknown name, which is a defect of the caller. */
export function namedAction<A>(actions: Readonly<Record<string, A>> | undefined, name: string): A {
  const found = actions?.[name]
  if (found === undefined) throw new Error(`there is no action ${name}`)
  return found
}

/** The items of all lists; of several items with the same key the first. */
export const unionBy =
  <T>(key: (item: T) => string) =>
  (lists: readonly (readonly T[])[]): T[] => {
    const found = new Map<string, T>()
    for (const item of lists.flat()) if (!found.has(key(item))) found.set(key(item), item)
    return [...found.values()]
  }

/** The symbol of a node of a kind, where nothing else is said. */
export const symbolOfKind = ({ template, symbol }: Pick<KindDescriptor, 'template' | 'symbol'>): string =>
  template?.symbol ?? symbol ?? 'machine'
