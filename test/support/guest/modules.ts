import { readdir, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { decompressed } from './decompressed.ts'

export interface Module {
  readonly name: string
  readonly content: Buffer
  /** What has to be there before it, by name. */
  readonly needs: readonly string[]
  /** Patterns of the devices, and names of the services, that it is for. */
  readonly aliases: readonly string[]
}

/** These modules and all that they need, from a directory /lib/modules/{version}; a built-in one is left out. */
export async function modulesIn(directory: string, names: readonly string[]): Promise<Module[]> {
  const files = await moduleFiles(directory)
  const builtin = new Set((await readFile(join(directory, 'modules.builtin'), 'utf8')).split('\n').map(nameOf))
  const found = new Map<string, Module>()
  const add = async (name: string): Promise<void> => {
    if (found.has(name) || builtin.has(name)) return
    const file = files.get(name)
    if (file === undefined) throw new Error(`the kernel of ${directory} has no module ${name}`)
    const module = moduleOf(name, await decompressed(await readFile(file)))
    found.set(name, module)
    for (const needed of module.needs) await add(needed)
  }
  for (const name of names) await add(name)
  return [...found.values()]
}

/** The table that modprobe reads: every module and all that it needs, the first to load at the end. */
export function dependencyTable(modules: readonly Module[]): string {
  const byName = new Map(modules.map((module) => [module.name, module]))
  const chain = (name: string): string[] => (byName.get(name)?.needs ?? []).flatMap((it) => [it, ...chain(it)])
  // What is needed twice is loaded at its last place, before everything that needs it.
  const once = (names: readonly string[]) =>
    names.filter((name, at) => byName.has(name) && names.lastIndexOf(name) === at)
  return modules
    .map(
      ({ name }) =>
        `${name}.ko:${once(chain(name))
          .map((needed) => ` ${needed}.ko`)
          .join('')}\n`,
    )
    .join('')
}

export const aliasTable = (modules: readonly Module[]): string =>
  modules.flatMap(({ name, aliases }) => aliases.map((alias) => `alias ${alias} ${name}\n`)).join('')

async function moduleFiles(directory: string): Promise<ReadonlyMap<string, string>> {
  const all = await readdir(join(directory, 'kernel'), { recursive: true, withFileTypes: true })
  return new Map(
    all.filter(({ name }) => /\.ko(\.\w+)?$/.test(name)).map((it) => [nameOf(it.name), join(it.parentPath, it.name)]),
  )
}

/** Files may have hyphens where the name of the module has underscores. */
const nameOf = (file: string): string =>
  basename(file)
    .replace(/\.ko(\.\w+)?$/, '')
    .replaceAll('-', '_')

/** What a module says of itself is in it as strings `{key}={value}`. */
function moduleOf(name: string, content: Buffer): Module {
  const said = (key: string) =>
    [...content.toString('latin1').matchAll(new RegExp(`\\0${key}=([^\\0]*)`, 'g'))].map(([, value = '']) => value)
  const needs = said('depends').flatMap((list) => list.split(',').filter((it) => it !== ''))
  return { name, content, needs: needs.map(nameOf), aliases: said('alias') }
}
