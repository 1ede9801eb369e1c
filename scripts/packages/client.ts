import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { build } from 'esbuild'
import { inDirectory, root, run } from './program.ts'

const entry = 'client/patchbay.ts'

/** What package.json says of the client for programs. */
export const clientExport = { types: './types/client/patchbay.d.ts', default: './dist/client.js' }

/** Bundles the client for programs: one file for all runtimes. */
export async function bundleClient(outfile: string): Promise<void> {
  await build({
    ...{ absWorkingDir: root, entryPoints: [`src/${entry}`], outfile },
    ...{ bundle: true, format: 'esm', platform: 'neutral', target: 'es2022', logLevel: 'warning' },
  })
}

/** Writes the client for programs into a directory, and its types, which need no other package. */
export async function writeClient(directory: string): Promise<void> {
  await bundleClient(join(directory, clientExport.default))
  await run(process.execPath, [join(root, 'scripts/make-client-types.ts')])
  await inDirectory(async (made) => {
    const config = {
      extends: join(root, 'src/tsconfig.json'),
      compilerOptions: {
        composite: false,
        declaration: true,
        tsBuildInfoFile: null,
        rootDir: join(root, 'src'),
        outDir: made,
      },
      files: [join(root, 'src', entry)],
      include: [],
    }
    await writeFile(join(made, 'tsconfig.json'), JSON.stringify(config))
    await run(join(root, 'node_modules/.bin/tsc'), ['-p', join(made, 'tsconfig.json')])
    const written = new Set<string>()
    const write = async (file: string): Promise<void> => {
      if (written.has(file)) return
      written.add(file)
      const text = await readFile(join(made, file), 'utf8')
      const to = join(directory, 'types', file)
      await mkdir(dirname(to), { recursive: true })
      // In a package a program imports the types of JavaScript.
      await writeFile(to, text.replaceAll(/(from '\.[^']*)\.ts'/g, "$1.js'"))
      for (const [, name = ''] of text.matchAll(/\bfrom '([^']+)'/g)) {
        if (!name.startsWith('.')) throw new Error(`the types of the client in ${file} need the package ${name}`)
        await write(relative(made, join(made, dirname(file), name)).replace(/\.ts$/, '.d.ts'))
      }
    }
    await write(entry.replace(/\.ts$/, '.d.ts'))
  })
}
