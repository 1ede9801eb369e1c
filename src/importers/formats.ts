import { LabFileError } from '../labfile/lab-file-error.ts'
import type { LabFormat } from '../model/lab/import.ts'
import { importCml } from './cml.ts'
import { type HasFile, importContainerlab, positionsOf } from './containerlab.ts'
import type { ConvertedLab } from './draft.ts'
import type { FilesAt } from './files-beside.ts'
import { importGns3 } from './gns3.ts'
import { Source } from './source.ts'

export interface ImportInput {
  readonly text: string
  /** Default: found out. */
  readonly format?: LabFormat | undefined
  /** Of containerlab: the content of the file `*.annotations.json` beside the topology. */
  readonly annotations?: string | undefined
  /** Whether a text file is in the directory of the lab. Absent: not known; configurations of GNS3 are taken as absent. */
  readonly hasFile?: HasFile
  /** The files at a path in the directory of the lab. Absent: not known. */
  readonly filesAt?: FilesAt
}

/** Reads a lab of another program as a valid lab file. 400 with line and column for a text of which nothing can be made. */
export function importLabFile({
  text,
  format,
  annotations,
  hasFile,
  filesAt,
}: ImportInput): ConvertedLab & { readonly format: LabFormat } {
  const { source, found } = readSource(text, format)
  switch (found) {
    case 'gns3':
      return { format: found, ...importGns3(source, hasFile) }
    case 'containerlab': {
      const positions =
        annotations === undefined ? undefined : source.attempt(() => positionsOf(new Source(annotations)))
      return { format: found, ...importContainerlab(source, { positions, hasFile, filesAt }) }
    }
    case 'cml':
      return { format: found, ...importCml(source) }
  }
}

/** The text as its program reads it: containerlab replaces variables before it reads YAML. */
function readSource(text: string, format: LabFormat | undefined): { source: Source; found: LabFormat } {
  const replaced = withShellDefaults(text)
  const ofContainerlab = replaced !== text && (format ?? 'containerlab') === 'containerlab' && readable(replaced)
  if (ofContainerlab && (format ?? formatOf(ofContainerlab)) === 'containerlab')
    return { source: ofContainerlab, found: 'containerlab' }
  const source = new Source(text)
  return { source, found: format ?? formatOf(source) }
}

function readable(text: string): Source | undefined {
  try {
    return new Source(text)
  } catch (error) {
    if (error instanceof LabFileError) return undefined
    throw error
  }
}

/** Rounds of replacement: a default may have variables with defaults. */
const maxNested = 5

/** A text in which variables of the shell with a default have it, such as `${IMAGE:=alpine}`, and `$$` is `$`: the environment is not read. */
function withShellDefaults(text: string): string {
  let result = text
  for (let round = 0; round < maxNested; round++) {
    const next = result.replace(shellDefault, (_, operator: string, value: string) =>
      operator.endsWith('+') ? '' : value,
    )
    if (next === result) break
    result = next
  }
  return result.replaceAll('$$', () => '$')
}
const shellDefault = /(?<!\$)\$\{[A-Za-z_]\w{0,100}(:?[-=+])([^{}\n]{0,1000})\}/g

/** The format of a document, by what only it has. */
function formatOf({ root }: Source): LabFormat {
  const has = (key: string) => root.isObject && !root.get(key).isAbsent
  if (has('appliance_id') || has('registry_version'))
    throw root.error(
      'this is an appliance: POST it to /v2/templates/import, and create nodes from the template',
      'is-appliance',
    )
  // GNS3 1.0 and 1.1 write no revision.
  const isGns3 = has('revision') || (has('topology') && root.get('type').value === 'topology')
  if (has('topology')) return isGns3 ? 'gns3' : 'containerlab'
  if (has('lab') && root.get('lab').isObject) return 'cml'
  if (has('lab')) throw root.error('this is already a lab file', 'is-lab-file')
  throw root.error(
    'this is not a lab of containerlab or GNS3 (they have "topology"), nor of CML (it has "lab" and "nodes")',
  )
}
