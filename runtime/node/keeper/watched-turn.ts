/** The start parameters of the watchdog thread. */
export interface WatchdogStart {
  /** See `cell`. */
  readonly memory: Int32Array
  /** Maximum processor time of a turn, ms. */
  readonly limitMs: number
}

/** The message of the watchdog thread: it ended the turn of a pc, at this place in the program. */
export type EndedTurn = { readonly owner: number; readonly stack: string }

/** Indexes into the memory that the main thread shares with the watchdog. */
export const cell = {
  /** Number of the turn. */
  turn: 0,
  /** The owner of the turn in which the main thread is held, or `nobody`; 0: it is not held. */
  held: 1,
  /** 1: the main thread is released. */
  released: 2,
} as const

export const cells = 3
export const nobody = -1

/** Name of the global function by which the watchdog holds the main thread. */
export const holdFunction = 'patchbayHoldTurn'
