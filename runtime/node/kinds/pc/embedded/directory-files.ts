import { randomBytes } from 'node:crypto'
import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Files that `save` and `load` of a pc may name: those of its own directory. */
export interface PcFiles {
  /** Undefined when there is no such file. */
  read(name: string): Promise<string | undefined>
  write(name: string, text: string): Promise<void>
}

const isBareName = (name: string): boolean => name !== '' && !/[/\\\0]/.test(name) && name !== '.' && name !== '..'

export function directoryFiles(directory: string): PcFiles {
  return {
    async read(name) {
      return isBareName(name) ? readFile(join(directory, name), 'utf8').catch(() => undefined) : undefined
    },
    async write(name, text) {
      if (!isBareName(name)) throw new Error('the name of a file in the directory of the pc is expected')
      const temporary = join(directory, `.${randomBytes(6).toString('hex')}.writing`)
      try {
        await writeFile(temporary, text, { mode: 0o600 })
        await rename(temporary, join(directory, name))
      } catch (error) {
        await rm(temporary, { force: true })
        throw error
      }
    },
  }
}
