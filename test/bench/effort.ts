/** How much is measured in one go: enough for a figure of its own, or a part of what is compared over many rounds. */
export interface Effort {
  /** Repetitions where a suite makes several. */
  readonly rounds: number
  /** Seconds of load for each figure. */
  readonly seconds: number
  /** Seconds before a load is measured. */
  readonly warmUpSeconds: number
}

export const inOneGo: Effort = { rounds: 7, seconds: 4, warmUpSeconds: 1 }
export const inTurns: Effort = { rounds: 1, seconds: 1, warmUpSeconds: 0.5 }
