/** What the watchdog thread is given when it starts. */
export interface WatchdogStart {
  /** See `cell`. */
  readonly memory: Int32Array
  /** So much processor time a turn may take, ms. */
  readonly limitMs: number
}

/** What the watchdog thread tells: the turn of a pc was ended, at this place in the program. */
export interface EndedTurn {
  readonly owner: number
  readonly stack: string
}

/** Places in the memory that the main thread shares with its watchdog. */
export const cell = {
  /** Counts turns. */
  turn: 0,
  /** The owner of the turn in which the main thread waits for the watchdog, or `nobody`; 0: it does not wait. */
  held: 1,
  /** 1: the main thread need not wait any more. */
  released: 2,
} as const

export const cells = 3
export const nobody = -1

/** The global function with which the watchdog holds the main thread. */
export const holdFunction = 'patchbayHoldTurn'
