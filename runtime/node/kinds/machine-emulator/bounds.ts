/** How long what has to do with machines may take, ms. Tests have shorter ones. */
export interface MachineTimeouts {
  /** An emulator to start, on a busy host. */
  readonly begin: number
  /** The same with the memory that the machine had. */
  readonly restore: number
  /** An emulator to obey a service that came after the one that started it. */
  readonly adopt: number
  /** A command of the monitor. */
  readonly command: number
  /** A guest to shut itself down, before it is ended. */
  readonly powerdown: number
  /** An emulator to write its disks out, before it is killed. */
  readonly end: number
  /** Sums of images to come with the answer; those that take longer are told of by an event. */
  readonly sums: number
}

export const defaultMachineTimeouts: MachineTimeouts = {
  begin: 30_000,
  restore: 300_000,
  adopt: 5000,
  command: 10_000,
  powerdown: 120_000,
  end: 10_000,
  sums: 1000,
}
