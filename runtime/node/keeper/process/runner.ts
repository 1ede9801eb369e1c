import type { TerminalSize } from '../../../../src/model/schema/console-size.ts'
import type { BridgeSpec } from '../protocol/protocol.ts'
import type { InputTaken } from './input-window.ts'
import type { InsideCommands } from './inside-commands.ts'

/** The running part of a unit: a child process, a pc in the embedded simulator, or a guest of another program. */
export interface Runner {
  /** 0 if the unit is not a process of the keeper. */
  readonly pid: number
  /** The leader of the process group, if it is another process. */
  readonly leader?: number
  /** Settles once, never rejects. */
  readonly ended: Promise<UnitEnd>
  /** Runs further commands in its namespaces; absent where there are none. */
  readonly inside?: InsideCommands | undefined
  /** Bytes typed on the console. */
  input(bytes: Uint8Array): InputTaken
  /** Has it wait with its output for the reader of its console, or go on; absent where it cannot. */
  wait?(isWaiting: boolean): void
  /** Gives the terminal that is its console another size; absent where it has none. `unsupported`. */
  resize?(size: TerminalSize): void
  /** Pauses or resumes it. `unsupported`. */
  hold(isHeld: boolean): void
  /** Limits its processor time, in percent of one processor; 0: no limit. `bad_request`, `unsupported`. */
  limit(percent: number): void
  /** Changes it in place; absent where that is not possible. */
  configure?(spec: BridgeSpec): Promise<void>
  /** Asks it to end, and kills it after `graceMs`. Safe to call twice. */
  stop(graceMs: number): Promise<UnitEnd>
}

export type UnitEnd = { readonly code: number | null; readonly signal: string | null }

/** Maximum number of input bytes that wait for the guest; more are discarded. */
export const maxInputBytes = 1 << 20
