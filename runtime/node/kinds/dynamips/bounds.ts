/** How long what has to do with dynamips may take, ms. Tests have shorter ones. */
export const defaultDynamipsTimeouts = {
  /** From the start of the program until it takes commands, on a busy host. */
  begin: 30_000,
  /** One that an earlier service started, to take commands of this one. */
  adopt: 5000,
  /** A command. */
  command: 10_000,
  /** A router to let go of its files, before its program is ended. */
  stop: 3000,
  /** Between the signals that end the program. */
  end: 2000,
  /** A router that is measured to boot: by then it waits for something to do. */
  boot: 20_000,
  /** The command that takes the samples, which lasts 10 s on an idle host. */
  proposals: 60_000,
  /** Between the two looks at the processor time. */
  sample: 3000,
  /** A measurement, all together. */
  measurement: 240_000,
}
export type DynamipsTimeouts = Readonly<typeof defaultDynamipsTimeouts>
