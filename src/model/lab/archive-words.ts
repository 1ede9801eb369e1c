import { kinds } from '../kinds/index.ts'
import type { KindDescriptor } from '../kinds/kind.ts'
import { kindIfKnown } from '../kinds/node.ts'

const descriptors: readonly KindDescriptor[] = kinds

/** Names of kinds in archives: those of GNS3. */
const ours = new Map(
  descriptors.flatMap(({ name, gns3 }) =>
    gns3 === undefined ? [] : [gns3.nodeType, ...(gns3.otherNodeTypes ?? [])].map((word) => [word, name] as const),
  ),
)
export const archiveWord = (kind: string): string => kindIfKnown(kind)?.gns3?.nodeType ?? kind
export const kindOfWord = (word: string): string => ours.get(word) ?? word

/** Directories of images in archives. */
export const imageDirectory = (kind: string): string | undefined => kindIfKnown(kind)?.image?.archiveDirectory
export const kindOfDirectory = (directory: string): string | undefined =>
  descriptors.find(({ image }) => image?.archiveDirectory === directory.toUpperCase())?.name

/** A node as far as its images are concerned. */
interface ImageNode {
  readonly node_type: string
  readonly properties: Readonly<Record<string, unknown>>
}

/** Names of the properties of a node that name images. */
export const imageProperties = ({ node_type, properties }: ImageNode): string[] =>
  Object.keys(properties).filter(
    (key) =>
      (/^initrd$|image$/.test(key) || key === kindIfKnown(node_type)?.image?.field) &&
      typeof properties[key] === 'string' &&
      properties[key] !== '',
  )
