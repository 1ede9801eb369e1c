import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { build, type Plugin } from 'esbuild'
import { variant } from './old-program.ts'

const root = join(import.meta.dirname, '../..')
const fixture = join(root, 'test/fixtures/mirror')

/** The files that a new kind changes, each with the module of the kind and its name there. */
export const lists = [
  { file: join(root, 'src/model/kinds/index.ts'), module: join(fixture, 'descriptor.ts'), name: 'mirror' },
  { file: join(root, 'runtime/node/drivers/index.ts'), module: join(fixture, 'index.ts'), name: 'mirrorDriver' },
] as const

/** A list with one more kind: an import and an entry. */
export function extended(text: string, { module, name }: (typeof lists)[number]): string {
  const longer = text.replace(/,?\s*\] as const/, `, ${name}] as const`)
  if (longer === text) throw new Error('it is no list of kinds')
  return `import { ${name} } from ${JSON.stringify(module)}\n${longer}`
}

const plugin: Plugin = {
  name: 'more-kinds',
  setup({ onLoad }) {
    onLoad({ filter: /(?:kinds|drivers)\/index\.ts$/ }, async ({ path }) => {
      const list = lists.find(({ file }) => file === path)
      if (list === undefined) return undefined
      return { contents: extended(await readFile(path, 'utf8'), list), loader: 'ts' }
    })
  },
}

/** The program with the mirror, which is in both lists; its file. */
export const programWithMirror = (): Promise<string> => variant('mirror', { plugins: [plugin] })

/** The page of settings that its script makes when the mirror is in both lists. */
export async function settingsPageWithMirror(directory: string): Promise<string> {
  const [script, page] = [join(directory, 'scripts/settings-table.js'), join(directory, 'docs/configuration.md')]
  await mkdir(join(directory, 'docs'))
  await writeFile(page, 'before\n<!-- settings:begin -->\nold\n<!-- settings:end -->\nafter\n')
  await writeFile(join(directory, 'package.json'), '{ "type": "module" }\n')
  await build({
    absWorkingDir: root,
    entryPoints: ['scripts/settings-table.ts'],
    outfile: script,
    bundle: true,
    format: 'esm',
    platform: 'node',
    external: ['koffi'],
    plugins: [plugin],
  })
  await import(script)
  return readFile(page, 'utf8')
}
