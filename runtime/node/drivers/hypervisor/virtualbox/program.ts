import { basename } from 'node:path'
import { conflict } from '../../../../../src/lib/errors/api-error.ts'
import { forDesktop } from '../../../os/programs/environment.ts'
import { findProgram } from '../../../os/system/find-program.ts'

const names = ['VBoxManage', 'vboxmanage']

/** The path of VBoxManage; `setting` is a path, a name in PATH, or empty. 409 when it is missing. */
export function findManager(setting: string, searchPath: string): string {
  if (setting !== '' && !names.includes(basename(setting).replace(/\.exe$/i, '')))
    throw conflict(`vboxmanage_path: expected the path of a program named VBoxManage, got ${quoted(setting)}`)
  const candidates = setting === '' ? names : [setting]
  const path = candidates.map((it) => findProgram(it, searchPath)).find((it) => it !== undefined)
  if (path !== undefined) return path
  if (setting !== '') throw conflict(`vboxmanage_path: ${quoted(setting)} is not an executable program`)
  throw conflict('VirtualBox is not installed: VBoxManage was not found in PATH')
}

const quoted = (text: string) => JSON.stringify(text.slice(0, 120))

/** Variables that VirtualBox inherits: for its settings, and for the screen of a window. */
export const variables = [...forDesktop, 'VBOX_*']

const language = process.platform === 'darwin' ? 'en_US.UTF-8' : 'C.UTF-8'

/** English output, in UTF-8: with the plain C locale VBoxManage does not start when an argument is not ASCII. */
export const locale = { LC_ALL: language, LANG: language, LANGUAGE: 'C' }
