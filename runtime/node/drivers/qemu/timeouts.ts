/** Timeouts, ms. Tests use shorter ones. */
export const defaultMachineTimeouts = {
  /** Start of an emulator, on a busy host. */
  begin: 30_000,
  /** Start of an emulator with saved memory. */
  restore: 300_000,
  /** Connection to the monitor of an emulator that already runs. */
  adopt: 5000,
  command: 10_000,
  /** Shutdown of a guest by its power button. */
  powerdown: 120_000,
  /** Between SIGTERM, after which the emulator flushes its disks, and SIGKILL. */
  end: 10_000,
  /** Wait of an answer for checksums of images; slower ones follow by an event. */
  sums: 1000,
}
export type MachineTimeouts = Readonly<typeof defaultMachineTimeouts>
