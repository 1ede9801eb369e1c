/** Timeouts, ms. Tests use shorter ones. */
export const defaultDynamipsTimeouts = {
  /** From the start of dynamips until it takes commands, on a busy host. */
  begin: 30_000,
  /** Connecting to a dynamips that already runs. */
  adopt: 5000,
  command: 10_000,
  /** `vm stop`, before the process is ended. */
  stop: 3000,
  /** Between SIGTERM and SIGKILL. */
  end: 2000,
  /** The boot of a router that is measured; it is idle afterwards. */
  boot: 20_000,
  /** `vm get_idle_pc_prop`, which takes 10 s on an idle host. */
  proposals: 60_000,
  /** Between the two readings of the processor time. */
  sample: 3000,
  /** A whole measurement. */
  measurement: 240_000,
}
export type DynamipsTimeouts = Readonly<typeof defaultDynamipsTimeouts>
