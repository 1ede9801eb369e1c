import { cp, mkdir, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { clientExport, writeClient } from './client.ts'
import { copy, inDirectory, type ProgramOptions, processors, rewrite, root, run, writeProgram } from './program.ts'

/** Packs the program for npm into a directory; the path of the archive. An install of it needs no registry and no compiler. */
export async function packNpm(out: string, { build }: Pick<ProgramOptions, 'build'> = {}): Promise<string> {
  return await inDirectory(async (directory) => {
    await writeProgram(directory, { for: processors, ...(build !== undefined && { build }) })
    await writeClient(directory)
    const more = ['README.md', 'CHANGELOG.md', 'LICENSE', 'docs']
    for (const name of more) await copy(join(root, name), join(directory, name))
    await rewrite(join(directory, 'package.json'), (it) => ({
      ...it,
      exports: { './client': clientExport, './package.json': './package.json' },
      files: ['dist', 'types', 'THIRD-PARTY-LICENSES.txt', ...more],
    }))
    const { stdout } = await run('npm', ['pack', '--silent'], { cwd: directory })
    const name = stdout.trim()
    await mkdir(out, { recursive: true })
    await cp(join(directory, name), join(out, `.${name}`))
    await rename(join(out, `.${name}`), join(out, name))
    return join(out, name)
  })
}
