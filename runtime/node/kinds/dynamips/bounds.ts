/** How long what has to do with dynamips may take, ms. Tests have shorter ones. */
export interface DynamipsTimeouts {
  /** From the start of the program until it takes commands, on a busy host. */
  readonly begin: number
  /** One that an earlier service started, to take commands of this one. */
  readonly adopt: number
  /** A command. */
  readonly command: number
  /** A router to let go of its files, before its program is ended. */
  readonly stop: number
  /** Between the signals that end the program. */
  readonly end: number
  /** A router that is measured to boot: by then it waits for something to do. */
  readonly boot: number
  /** The command that takes the samples, which lasts 10 s on an idle host. */
  readonly proposals: number
  /** Between the two looks at the processor time. */
  readonly sample: number
  /** A measurement, all together. */
  readonly measurement: number
}

export const defaultDynamipsTimeouts: DynamipsTimeouts = {
  begin: 30_000,
  adopt: 5000,
  command: 10_000,
  stop: 3000,
  end: 2000,
  boot: 20_000,
  proposals: 60_000,
  sample: 3000,
  measurement: 240_000,
}
