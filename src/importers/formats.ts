import type { LabFormat } from '../model/lab/import.ts'
import { importCml } from './cml.ts'
import { importContainerlab, positionsOf } from './containerlab.ts'
import type { ImportedLab } from './draft.ts'
import { importGns3 } from './gns3.ts'
import { Source } from './source.ts'

export interface ImportInput {
  readonly text: string
  /** Default: found out. */
  readonly format?: LabFormat | undefined
  /** Of containerlab: the content of the file `*.annotations.json` beside the topology. */
  readonly annotations?: string | undefined
  /** Of GNS3: whether there is such a file in the directory of the project. Default: there are none. */
  readonly hasFile?: (path: string) => boolean
}

/** Reads a lab of another program as a lab file. 400 with line and column for a text that is none, 413 for one that is too long. */
export function importLabFile({
  text,
  format,
  annotations,
  hasFile,
}: ImportInput): ImportedLab & { readonly format: LabFormat } {
  const source = new Source(text)
  const found = format ?? formatOf(source)
  switch (found) {
    case 'gns3':
      return { format: found, ...importGns3(source, hasFile) }
    case 'containerlab': {
      const positions = annotations === undefined ? undefined : positionsOf(new Source(annotations))
      return { format: found, ...importContainerlab(source, positions) }
    }
    case 'cml':
      return { format: found, ...importCml(source) }
  }
}

/** The format of a document, by what only it has. */
function formatOf({ root }: Source): LabFormat {
  const has = (key: string) => root.isObject && !root.get(key).isAbsent
  if (has('appliance_id') || has('registry_version'))
    throw root.fault(
      'this is an appliance: POST it to /v2/templates/import, and make nodes of the template',
      'is-appliance',
    )
  if (has('topology')) return has('revision') ? 'gns3' : 'containerlab'
  if (has('lab') && root.get('lab').isObject) return 'cml'
  if (has('lab')) throw root.fault('this is a lab file already', 'is-lab-file')
  throw root.fault(
    'this is no lab of containerlab or GNS3 (they have "topology") and none of CML (it has "lab" and "nodes")',
  )
}
