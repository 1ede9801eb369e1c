import { readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Maximum size of a script, bytes. Scripts are short, and all pcs share one process. */
const largestFile = 1 << 20

/** The files for `save` and `load`: those of the pc's directory. */
export interface PcFiles {
  /** Undefined when the file does not exist. Throws when it is not a regular file or too large. */
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
        throw new Error(`${name} is not a file of at most ${largestFile} bytes`)
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
