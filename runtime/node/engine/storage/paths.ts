import { realpath, stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join, normalize, relative, resolve, sep } from 'node:path'
import { badRequest, conflict, forbidden, notFound } from '../../../../src/lib/errors/api-error.ts'
import { quotedPath } from '../../../../src/lib/text/escape.ts'

/** The directory of the service in a project: it marks the project, and has its records. */
export const markerDirectory = '.patchbay'

/** Whether `path` is `base` or below it, by components. Both must be resolved. */
export function isInside(base: string, path: string): boolean {
  const way = relative(base, path)
  return way === '' || (way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way))
}

/** The real path of a path that need not exist: that of its nearest existing parent, with the rest appended. */
export async function realish(path: string): Promise<string> {
  try {
    return await realpath(path)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const parent = dirname(path)
    if ((code !== 'ENOENT' && code !== 'ENOTDIR') || parent === path) throw error
    return join(await realish(parent), path.slice(parent.length))
  }
}

/**
 * The real path of a file of a project, symbolic links resolved. The file need not exist. 403 when the path leaves the project or
 * leads to records of the service.
 */
export async function resolveInProject(root: string, path: string): Promise<string> {
  const why = 'is not inside the project: expected a path below its directory, without ".."'
  const refuse = () => forbidden(`path: ${quotedPath(path)} ${why}`)
  requireNoNul(path)
  if (path.startsWith('/') || path.includes('\\')) throw refuse()
  const base = await realpath(root).catch(() => {
    throw notFound('The directory of the project is missing')
  })
  const wanted = resolve(base, normalize(path))
  if (!isInside(base, wanted) || wanted === base) throw refuse()
  const real = await realish(wanted)
  if (!isInside(base, real)) throw refuse()
  const [first] = relative(base, real).split(sep)
  if (first === markerDirectory) throw forbidden('path: this directory is reserved for records of the service')
  return real
}

/** 400 for a path with a NUL, which no file has. */
export function requireNoNul(path: string): void {
  if (path.includes('\0')) throw badRequest('path: must not contain a NUL character')
}

/** 400 for a path that is not absolute. */
export function requireAbsolute(path: string): void {
  if (!isAbsolute(path)) throw badRequest(`path: expected an absolute path, got ${quotedPath(path)}`)
}

export interface PathRules {
  readonly dataDirectory: string
  readonly projectsDirectory: string
  /** Whether the current request is in local mode. */
  readonly isLocal: () => boolean
}

/** The project directory that a client names, absolute and without `..`; 400 or 403 when it cannot be a project. Changes nothing. */
export async function checkedProjectPath(path: string, rules: PathRules): Promise<string> {
  requireNoNul(path)
  if (path.includes('"')) throw forbidden('path: a project path cannot contain a double quote')
  requireAbsolute(path)
  if (Buffer.byteLength(path) > 1024) throw badRequest('path: expected at most 1024 bytes')
  const wanted = resolve(path)
  const real = await realish(wanted).catch((cause: unknown) => {
    throw forbidden('path: the directory cannot be reached', { cause: cause as Error })
  })
  const projects = await realish(rules.projectsDirectory)
  if (!rules.isLocal() && (!isInside(projects, real) || real === projects))
    throw forbidden(`path: outside local mode a project must be inside ${rules.projectsDirectory}`)
  const precious = [rules.dataDirectory, rules.projectsDirectory, join(rules.dataDirectory, 'run'), homedir(), '/']
  for (const directory of await Promise.all(precious.map(realish))) {
    if (isInside(real, directory))
      throw forbidden('path: the data directory, a home directory or a parent of them cannot be a project')
  }
  // These file systems store no files; mkdir in /proc may not even fail.
  if (['/proc', '/sys', '/dev'].some((directory) => isInside(directory, real)))
    throw forbidden('path: /proc, /sys and /dev cannot hold projects; choose a directory on a disk')
  if (isInside(await realish(join(rules.dataDirectory, 'run')), real))
    throw forbidden('path: this directory belongs to the service')
  const found = await stat(wanted).catch(() => undefined)
  if (found !== undefined && !found.isDirectory())
    throw conflict('path: this is a file, not a directory; choose another path')
  return wanted
}
