import type { BridgeSpec, KeeperErrorCode, MacEntry } from '../../keeper/protocol/protocol.ts'
import type { BridgeLoop, EndSpec, LaneSpec, OpenedEnd, PortImpairment } from '../switch/core/path.ts'

/** Start parameters of the fast path's thread. */
export type Start = { readonly counters: SharedArrayBuffer; readonly isSegmenting: boolean }

/** Operations of the thread, with their results. */
export interface WorkerCalls {
  open: { in: EndSpec; out: OpenedEnd }
  close: { in: number; out: undefined }
  lane: { in: { input: number; lane: LaneSpec | null }; out: undefined }
  impair: { in: { row: number; impairment: PortImpairment }; out: undefined }
  capture: { in: { row: number; memory: SharedArrayBuffer | null }; out: undefined }
  reset: { in: number; out: undefined }
  plain: { in: readonly number[]; out: boolean }
  forget: { in: number; out: undefined }
  configure: { in: { bridge: number; spec: BridgeSpec | null }; out: undefined }
  entries: { in: number; out: MacEntry[] }
  clear: { in: number; out: undefined }
  send: { in: { end: number; frame: Uint8Array }; out: undefined }
  tidy: { in: number; out: undefined }
  stop: { in: undefined; out: undefined }
}

export interface WorkerCall<Name extends keyof WorkerCalls = keyof WorkerCalls> {
  readonly id: number
  readonly name: Name
  readonly input: WorkerCalls[Name]['in']
}

/** Messages of the thread: `ready` with the wake-up descriptor, answers, and received probes and captures. */
export type Report =
  | { readonly type: 'ready'; readonly wakeDescriptor: number }
  | { readonly type: 'failed'; readonly message: string }
  | { readonly type: 'answer'; readonly id: number; readonly result: unknown }
  | { readonly type: 'refusal'; readonly id: number; readonly code: KeeperErrorCode; readonly message: string }
  | { readonly type: 'probe'; readonly end: number; readonly frame: Uint8Array }
  | { readonly type: 'captured'; readonly row: number; readonly slot: number; readonly length: number }
  | { readonly type: 'looped'; readonly loop: BridgeLoop }
