import type { InputTaken } from './input-window.ts'

/** Something that runs for a unit: a child process, a pc in the embedded simulator, or a guest of a program that is not ours. */
export interface Runner {
  /** 0 for what is no process of ours. */
  readonly pid: number
  /** The leader of its process group, where that is another process. */
  readonly leader?: number
  /** Settles once, never rejects. */
  readonly ended: Promise<UnitEnd>
  /** Bytes typed on the console. */
  input(bytes: Uint8Array): InputTaken
  /** Stops it where it is, or has it go on. `unsupported`. */
  hold(isHeld: boolean): void
  /** Limits its processor time to so many percent of one processor; 0: no limit. `bad_request`, `unsupported`. */
  limit(percent: number): void
  /** Asks it to end, and makes it end after `graceMs`. Safe to call twice. */
  stop(graceMs: number): Promise<UnitEnd>
}

export interface UnitEnd {
  readonly code: number | null
  readonly signal: string | null
}

/** More typed bytes than this waiting for a guest that does not read are refused. */
export const maxInputBytes = 1 << 20
