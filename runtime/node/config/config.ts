import type { Reloaded } from '../../../src/model/host.ts'
import type { Settings } from './settings.ts'

/** The settings in force, with the defaults that depend on others filled in. */
export type Resolved = Settings & {
  /** Absolute. */
  readonly data: string
  readonly local: boolean
  readonly console_host: string
}

export interface Config {
  readonly current: Resolved
  /** Reads the file again; see `HostFacts.reloadConfig`. */
  reload(): Promise<Reloaded>
}

/** One setting, where it came from, and its value as it may be shown. */
export type Effective = { readonly key: string; readonly value: string; readonly source: string }
