import { randomBytes } from 'node:crypto'
import { mkdir, open, realpath, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'

/**
 * Writes files of the user: all of them beside their destinations (with fsync), then renamed one after the other, so that a full disk changes
 * none. A file keeps its mode, unless it gets one, and a link its target; missing directories are made. Rejects with the error of the system.
 */
export async function replaceFiles(
  files: readonly { readonly path: string; readonly text: string; readonly mode?: number }[],
): Promise<void> {
  const written: { readonly temporary: string; readonly target: string }[] = []
  try {
    for (const { path, text, mode: given } of files) {
      await mkdir(dirname(path), { recursive: true })
      const target = await realpath(path).catch(() => path)
      const mode =
        given ??
        (await stat(target).then(
          (it) => it.mode & 0o7777,
          () => undefined,
        ))
      const temporary = join(dirname(target), `.${basename(target)}.${randomBytes(6).toString('hex')}`)
      await using file = await open(temporary, 'wx')
      written.push({ temporary, target })
      if (mode !== undefined) await file.chmod(mode)
      await file.writeFile(text)
      await file.sync()
    }
    for (const { temporary, target } of written) await rename(temporary, target)
  } finally {
    await Promise.all(written.map(({ temporary }) => rm(temporary, { force: true })))
  }
}
