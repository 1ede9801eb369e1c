import { readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** A script is a few lines; all pcs share the memory that it is read into. */
const largestFile = 1 << 20

/** Files that `save` and `load` of a pc may name: those of its own directory. */
export interface PcFiles {
  /** Undefined when there is no such file. Throws when it is no file that can be a script. */
  read(name: string): Promise<string | undefined>
  write(name: string, text: string): Promise<void>
}

const isBareName = (name: string): boolean => name !== '' && !/[/\\\0]/.test(name) && name !== '.' && name !== '..'

export function directoryFiles(directory: string): PcFiles {
  return {
    async read(name) {
      if (!isBareName(name)) return undefined
      const file = join(directory, name)
      const stats = await stat(file).catch(() => undefined)
      if (stats === undefined) return undefined
      if (!stats.isFile() || stats.size > largestFile) {
        throw new Error(`${name} is no file of at most ${largestFile} bytes`)
      }
      return readFile(file, 'utf8').catch(() => undefined)
    },
    async write(name, text) {
      if (!isBareName(name)) throw new Error('the name of a file in the directory of the pc is expected')
      const temporary = join(directory, `.${crypto.randomUUID()}.writing`)
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
