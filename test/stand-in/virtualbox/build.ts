import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { build } from 'esbuild'

const cache = join(import.meta.dirname, '../../../node_modules/.cache/patchbay-virtualbox')

/** Asks the world's server, where there is one. */
const script = `#!/bin/bash
if read -r port 2>/dev/null <"$VBOX_USER_HOME/server" || [ -n "$port" ]; then
  exec 3<>"/dev/tcp/127.0.0.1/$port"
  printf '%s\\0' "$$" "$#" "\${LC_ALL:-$LANG}" "$@" >&3
  IFS= read -r -u 3 code && IFS= read -r -u 3 error
  cat <&3
  printf '%b' "$error" >&2
  exit "$code"
fi
exec '${process.execPath}' "$(dirname "$0")/main.js" "$@"
`

let made: Promise<string> | undefined

/**
 * The directory of a program `VBoxManage` that takes VirtualBox's place, made once and kept for all test runs. It keeps its
 * world in the directory that VBOX_USER_HOME names (see `state.ts`), and is as strict as VirtualBox is.
 */
export function standIn(): Promise<string> {
  made ??= make()
  return made
}

async function make(): Promise<string> {
  const sources = (await readdir(import.meta.dirname)).filter((name) => name.endsWith('.ts')).sort()
  const hash = createHash('sha256').update(process.execPath)
  for (const name of sources) hash.update(`\0${name}\0`).update(await readFile(join(import.meta.dirname, name)))
  const directory = join(cache, hash.digest('hex').slice(0, 16))
  if ((await stat(directory).catch(() => undefined)) === undefined) await fill(directory)
  return directory
}

/** The directory is there with the programs in it, or not at all. */
async function fill(directory: string): Promise<void> {
  await mkdir(cache, { recursive: true })
  const work = await mkdtemp(join(cache, 'making-'))
  try {
    await build({
      entryPoints: { main: join(import.meta.dirname, 'main.ts'), vm: join(import.meta.dirname, 'vm.ts') },
      outdir: work,
      bundle: true,
      format: 'cjs',
      platform: 'node',
      target: 'node20',
      logLevel: 'warning',
    })
    await writeFile(join(work, 'VBoxManage'), script, { mode: 0o755 })
    await rename(work, directory)
  } catch (error) {
    await rm(work, { recursive: true, force: true })
    // Another test run was faster.
    if (!['EEXIST', 'ENOTEMPTY'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
  }
}
