import { type Stats, statSync } from 'node:fs'
import { basename } from 'node:path'
import { conflict } from '../../../../../src/errors/api-error.ts'
import { forDesktop } from '../../../programs/environment.ts'
import { findProgram } from '../../../system/find-program.ts'

const names = ['VBoxManage', 'vboxmanage']

export interface FoundManager {
  readonly path: string
  /** Another one when the file has changed. */
  readonly stamp: string
}

/** The VBoxManage of the setting (a path, or a name in PATH; empty: either name); 409 when there is none. */
export function findManager(setting: string, searchPath: string): FoundManager {
  if (setting !== '' && !names.includes(basename(setting).replace(/\.exe$/i, ''))) {
    throw conflict(`vboxmanage_path: expected the path of a program that is called VBoxManage, got ${quoted(setting)}`)
  }
  const candidates = setting === '' ? names : [setting]
  for (const candidate of candidates) {
    const path = findProgram(candidate, searchPath)
    if (path !== undefined) return { path, stamp: stampOf(path) }
  }
  if (setting !== '') throw conflict(`vboxmanage_path: ${quoted(setting)} is no program that can be run`)
  throw conflict('VirtualBox is not installed: VBoxManage was not found in PATH')
}

function stampOf(path: string): string {
  const { ino, size, mtimeMs } = statSync(path, { throwIfNoEntry: false }) ?? ({ ino: 0, size: 0, mtimeMs: 0 } as Stats)
  return `${path}:${ino}:${size}:${mtimeMs}`
}

const quoted = (text: string) => JSON.stringify(text.slice(0, 120))

/** What VirtualBox looks at of our environment: where it keeps its settings, and the screen that a window opens on. */
export const variables = [...forDesktop, 'VBOX_*']

const language = process.platform === 'darwin' ? 'en_US.UTF-8' : 'C.UTF-8'

/**
 * English whatever our language is. With the plain C locale VBoxManage does not even begin when an argument is not ASCII, as
 * the name of a machine may be.
 */
export const locale = { LC_ALL: language, LANG: language, LANGUAGE: 'C' }
