import type { Static, TObject } from '@sinclair/typebox'
import type { Patchbay } from '../../client/patchbay.ts'
import type { ReadFile } from '../../importers/readers.ts'
import type { Role } from '../../model/access/access-token.ts'

/** What tools work with. The client has the credentials of the caller, so that its role, its scope and its limits hold. */
export interface ToolContext {
  readonly client: Patchbay
  /** Reads lab files, as the host of the server does it. */
  readonly read: ReadFile
  /** The text of a file of the build; undefined: there is none of that name. */
  readonly asset: (name: string) => Promise<string | undefined>
  /** Aborts when the caller no longer waits. */
  readonly signal: AbortSignal
  /** Says how far a long work is. */
  readonly progress: (done: number, total: number, doing: string) => void
}

/** What a tool answers. The sentences are ours; `data` has what comes from labs, guests and captures. */
export interface ToolAnswer {
  /** The result in a sentence. */
  readonly verdict: string
  readonly done?: readonly string[]
  /** What was asked for, or could be expected, and was not done, each with its reason. */
  readonly not_done?: readonly string[]
  /** Confirms the plan that the answer has. */
  readonly number?: string
  readonly data?: Readonly<Record<string, unknown>>
  /** Whether the tool has failed. */
  readonly isError?: boolean
}

/** What a call would change. The same plan later means that nothing has changed which it depends on. */
export interface ChangePlan {
  readonly sentence: string
  readonly data: Readonly<Record<string, unknown>>
}

/** One tool, as data: lists, checks of input, roles and confirmations are made from it. */
export interface Tool<I extends TObject = TObject> {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly input: I
  /** Who may call it. */
  readonly role: Extract<Role, 'read' | 'operate'>
  /** Whether something that was there before can be lost. */
  readonly isDestructive?: boolean
  /** What a call would change; undefined for a call that changes nothing. Absent: the tool changes nothing. */
  readonly plan?: (input: Static<I>, context: ToolContext) => Promise<ChangePlan | undefined>
  readonly run: (input: Static<I>, context: ToolContext) => Promise<ToolAnswer>
}

/** Infers the types of the input, then forgets them so that tools fit in one list. */
export const tool = <I extends TObject>(definition: Tool<I>): Tool => definition as unknown as Tool
