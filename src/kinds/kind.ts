import type { Static, TObject, TProperties, TSchema } from '@sinclair/typebox'
import type { Role } from '../model/access-token.ts'
import type { LineType } from '../model/capture.ts'
import type { Nio } from '../schema/nio.ts'
import type { KindV1 } from './v1.ts'

export type ApiVersion = 'v1' | 'v2'

/** An operation that only one kind has, on a node or on a compute, and its endpoint. Every part of the service reads it here. */
export interface Action<I extends TObject = TObject, O extends TSchema = TSchema> {
  readonly method: 'GET' | 'POST'
  /** Below the path of the node, or of the kind. */
  readonly path: string
  readonly summary: string
  readonly description?: string
  /** API versions that have it. Default: both. */
  readonly versions?: readonly ApiVersion[]
  /** Default: `read` for GET, `operate` for POST. */
  readonly role?: Role
  /** Group of the endpoint in the reference. Default: that of the nodes. */
  readonly group?: 'tools'
  /** A GET takes its lists in the query, separated by commas; a body is for older clients. */
  readonly input?: I
  /** How the query of a GET is documented. */
  readonly query?: TObject
  /** Absent: the answer has no body. */
  readonly output?: O
  readonly answer: { readonly status?: 201; readonly description: string }
  readonly errors?: Readonly<Record<number, string>>
  /** It takes more time than a read: a client waits longer for it. */
  readonly isSlow?: boolean
  /** An older endpoint of v1 with the same output in another form. */
  readonly v1Form?: {
    readonly path: string
    readonly summary: string
    readonly description: string
    readonly schema: TSchema
    shown(output: Static<O>): unknown
  }
}

/** An action of a compute that runs the kind. */
export interface ComputeAction<I extends TObject = TObject, O extends TSchema = TSchema> extends Action<I, O> {
  /** The answer of a gateway, from those of its computes. */
  merge(outputs: readonly Static<O>[]): Static<O>
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

/** So many adapters of one port each. */
export const adaptersOfOnePort = (count: unknown): readonly PortShape[] =>
  Array.from({ length: typeof count === 'number' ? count : 0 }, (_, adapter) => ({ adapter, port: 0 }))

/**
 * An action of a node on an image alone, at POST /v2/computes/{compute_id}/{path}: the compute makes a node in a temporary project,
 * runs the action of the same name, and removes the project.
 */
export interface ImageAction extends Required<Pick<Action, 'path' | 'summary' | 'description' | 'answer' | 'errors'>> {
  /** Name of the temporary project and its node. */
  readonly projectName: string
  /** What the node is created with; its member `image` names the image. */
  readonly input: TObject
  readonly output: TSchema
}

/** A kind of node, as every runtime knows it. How a host runs it is in `runtime/node/kinds`. */
export interface KindDescriptor {
  /** Its word in paths, records and events. */
  readonly name: string
  /** A node of the kind, within a sentence. */
  readonly noun: string
  /** Words of other programs for the kind: hints in errors name ours. */
  readonly aliases?: readonly string[]
  /** A node as v2 shows it. */
  readonly node: TObject
  readonly create: TObject
  readonly update: TObject
  readonly v1: KindV1
  readonly v2?: {
    /** Whether `start` answers with the node. Default: yes. */
    readonly startShows?: boolean
    /** Changes as v2 means them. */
    changes?(body: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>>
  }
  /** The ports of a node, from its fields, in the order in which people count them. */
  readonly ports?: (node: Readonly<Record<string, unknown>>) => readonly PortShape[]
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
  /** NIO types that its ports take; none: the nodes have no ports. */
  readonly nioTypes: readonly Nio['type'][]
  /** What the console of a node may be. */
  readonly consoles: readonly ('text' | 'screen')[]
  /** Whether its nodes can be paused. */
  readonly canBePaused: boolean
  /** Whether its nodes can be reset, else a reload is a stop and a start. Default: as they can be paused. */
  readonly canBeReset?: boolean
  /** Whether a node can be made a copy of another one. Default: yes. */
  readonly canBeCopied?: boolean
  /** Whether a start of what runs (v1), a resume of what is not paused and a reset of what is stopped are refused. */
  readonly isStrict?: boolean
  /** What a start may bring along. */
  readonly start?: TObject
  /** What 409 means. */
  readonly conflicts: Readonly<Record<'create' | 'update' | 'start', string>>
  /** Present where its nodes start from images. */
  readonly image?: {
    /** The host runs them as programs: outside local mode only those that an administrator admits. */
    readonly isProgram?: boolean
    /** They are disks, which the host can make and enlarge, and which may be based on each other. */
    readonly isDisk?: boolean
  }
  /** Of a node. */
  readonly actions?: Readonly<Record<string, Action>>
  /** Of a compute. */
  readonly computeActions?: Readonly<Record<string, ComputeAction>>
  readonly imageActions?: Readonly<Record<string, ImageAction>>
  /** Members of the capabilities of a compute; their defaults are those of a gateway without computes. */
  readonly capabilities?: TProperties
}

/** Keeps the literal types of a descriptor. */
export const kind = <const D extends KindDescriptor>(descriptor: D): D => descriptor

/** Infers the types of an action from its schemas. */
export const action = <I extends TObject, O extends TSchema>(definition: Action<I, O>): Action<I, O> => definition
export const computeAction = <I extends TObject, O extends TSchema>(
  definition: ComputeAction<I, O>,
): ComputeAction<I, O> => definition

/** The action of that name, which a route or another part of the service took from the descriptor. */
export function namedAction<A>(actions: Readonly<Record<string, A>> | undefined, name: string): A {
  const found = actions?.[name]
  if (found === undefined) throw new Error(`there is no action ${name}`)
  return found
}

/** The items of all lists; of those with the same key the first counts. */
export const unionBy =
  <T>(key: (item: T) => string) =>
  (lists: readonly (readonly T[])[]): T[] => {
    const found = new Map<string, T>()
    for (const item of lists.flat()) if (!found.has(key(item))) found.set(key(item), item)
    return [...found.values()]
  }
