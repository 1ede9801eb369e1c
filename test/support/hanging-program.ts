import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Plugin } from 'esbuild'
import { variant } from './old-program.ts'

const fixture = join(import.meta.dirname, '../fixtures/hang-command.ts')

/** The present program, with a command `hang` in the simulator of pcs: test/fixtures/hang-command.ts. Its file. */
export const hangingProgram = (): Promise<string> => variant('hanging', { plugins: [withHang] })

const withHang: Plugin = {
  name: 'hang',
  setup(build) {
    build.onLoad({ filter: /simulator\/commands\/index\.ts$/ }, async ({ path }) => {
      const source = await readFile(path, 'utf8')
      const list = 'export const consoleCommands: readonly ConsoleCommand[] = ['
      if (!source.includes(list)) throw new Error(`${path} has no list of commands`)
      const contents = `import { hang } from ${JSON.stringify(fixture)}\n${source.replace(list, `${list}hang,`)}`
      return { contents, loader: 'ts' }
    })
  },
}
