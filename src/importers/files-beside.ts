/** A file beside a foreign lab. */
export interface FileBeside {
  /** Relative to the directory of the lab. */
  readonly path: string
  /** Whether it has text, and little enough of it. */
  readonly isText: boolean
  /** Whether the computer may run it. */
  readonly isProgram: boolean
}

/** The files at a path without `./`: itself, or all below a directory. */
export type FilesAt = (path: string) => readonly FileBeside[]

/** Most directories that a path of a list of names has. */
const maxDepth = 32

/**
 * The text files of a list of names. A name may lack directories before it, such as that of a file that was dropped on the page: it is
 * of the first path that ends with it, and of no other.
 */
export function filesNamed(names: readonly string[]): FilesAt {
  const all = new Set(names)
  const below = new Map<string, string[]>()
  for (const name of names)
    for (const place of slashesIn(name)) {
      const directory = name.slice(0, place)
      const known = below.get(directory)
      if (known === undefined) below.set(directory, [name])
      else known.push(name)
    }
  const taken = new Map<string, string>()
  const isFile = (path: string) => {
    if (all.has(path)) return true
    const end = slashesIn(path)
      .map((place) => path.slice(place + 1))
      .find((it) => all.has(it))
    if (end === undefined) return false
    const first = taken.get(end) ?? path
    taken.set(end, first)
    return first === path
  }
  return (given) => {
    const path = given.replace(/^(\.\/+)+/, '')
    const found = isFile(path) ? [given] : (below.get(path) ?? [])
    return found.map((it) => ({ path: it, isText: true, isProgram: false }))
  }
}

/** The positions of the slashes of a path, from its end. */
function slashesIn(path: string): number[] {
  const places: number[] = []
  let place = path.lastIndexOf('/')
  while (place > 0 && places.length < maxDepth) {
    places.push(place)
    place = path.lastIndexOf('/', place - 1)
  }
  return place === 0 ? [...places, place] : places
}
