import type { Reloaded } from '../../../../src/model/host.ts'
import type { Settings } from './settings.ts'

/** The settings in force, including defaults that depend on other settings. */
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

/** One setting with its source; secrets are masked. */
export type Effective = { readonly key: string; readonly value: string; readonly source: string }
