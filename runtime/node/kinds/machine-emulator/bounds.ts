/** Timeouts of machines, ms. Tests use shorter ones. */
export const defaultMachineTimeouts = {
  /** An emulator to start, on a busy host. */
  begin: 30_000,
  /** The same with the memory that the machine had. */
  restore: 300_000,
  /** An emulator to obey a service that came after the one that started it. */
  adopt: 5000,
  /** A command of the monitor. */
  command: 10_000,
  /** A guest to shut itself down, before it is ended. */
  powerdown: 120_000,
  /** An emulator to write its disks out, before it is killed. */
  end: 10_000,
  /** Sums of images to come with the answer; slower sums follow by an event. */
  sums: 1000,
}
export type MachineTimeouts = Readonly<typeof defaultMachineTimeouts>
