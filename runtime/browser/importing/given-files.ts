/** The longest text that the service takes as a lab, bytes. */
const maxText = 1 << 20
/** The longest name of a lab that a lab file makes. */
const maxName = 63

/** A file to import, with the files beside it that it may need. */
export interface GivenFile<F> {
  readonly file: F
  /** Of containerlab: the file with the positions of the nodes. */
  readonly annotations: F | undefined
  /** Files that are no labs, such as configurations that a lab file names. */
  readonly beside: readonly F[]
}

const annotationsEnd = '.annotations.json'
const isLab = (name: string): boolean => /\.(ya?ml|json|gns3|gns3a|gns3p|gns3project|zip)$/i.test(name)

/** Sorts files that were given together. When none looks like a lab, each is tried: the service says what is wrong with it. */
export function givenFiles<F extends { readonly name: string }>(files: readonly F[]): GivenFile<F>[] {
  const isBeside = ({ name }: F) =>
    name.endsWith(annotationsEnd) && files.some((file) => file.name === name.slice(0, -annotationsEnd.length))
  const labs = files.filter((it) => isLab(it.name) && !isBeside(it))
  const beside = labs.length === 0 ? [] : files.filter((it) => !isLab(it.name))
  return (labs.length === 0 ? files : labs).map((file) => ({
    file,
    annotations: files.find(({ name }) => name === file.name + annotationsEnd),
    beside,
  }))
}

/** Whether a file begins as a zip archive (APPNOTE.TXT 4.3.7). */
export async function isArchive(file: Blob): Promise<boolean> {
  const [p, k, three, four] = new Uint8Array(await file.slice(0, 4).arrayBuffer())
  return p === 0x50 && k === 0x4b && three === 3 && four === 4
}

/** The text of a file. Rejects with what is wrong with it. */
export async function textOf(file: Blob): Promise<string> {
  if (file.size === 0) throw new Error('The file is empty.')
  if (file.size > maxText) throw new Error('The file is not an archive, and too large for a lab file: at most 1 MiB.')
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(await file.arrayBuffer())
  } catch {
    throw new Error('The file is neither an archive nor text in UTF-8.')
  }
}

/** The paths by which a text may name a file, such as `configs/R1.cfg` of `R1.cfg`. */
export function pathsIn(text: string, name: string): string[] {
  const literal = name.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
  const found = text.matchAll(
    new RegExp(`(?<![^\\s"'\\[,{:=])(?:[^\\s"'\\[\\],{}=]*/)?${literal}(?![^\\s"'\\],}])`, 'gu'),
  )
  return [...new Set([...found].map(([path]) => path))]
}

/** Whether a text has the name of a lab as a lab file has it. What has no such line may still be one: the service says so. */
export const isLabFile = (text: string): boolean =>
  /^lab:[ \t]+["']?[a-z0-9][a-z0-9-]*["']?[ \t\r]*(?:#.*)?$/m.test(text)

/** A name for a new lab: the wanted one, or with the next free number. Names are unique without regard to case. */
export function freeName(wanted: string, taken: readonly string[]): string {
  const used = new Set(taken.map((it) => it.toLowerCase()))
  for (let number = 1; ; number++) {
    const end = number === 1 ? '' : `-${number}`
    const name = wanted.slice(0, maxName - end.length) + end
    if (!used.has(name.toLowerCase())) return name
  }
}
