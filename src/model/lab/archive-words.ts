/** Names of kinds in archives. */
const words: Readonly<Record<string, string>> = {
  ...{ pc: 'vpcs', 'machine-emulator': 'qemu', hypervisor: 'virtualbox' },
  ...{ switch: 'ethernet_switch', hub: 'ethernet_hub' },
}
const ours = new Map([...Object.entries(words).map(([kind, word]) => [word, kind] as const), ['vmware', 'hypervisor']])
export const archiveWord = (kind: string): string => words[kind] ?? kind
export const kindOfWord = (word: string): string => ours.get(word) ?? word

/** Directories of images in archives. */
const imageDirectories: Readonly<Record<string, string>> = { 'machine-emulator': 'QEMU', dynamips: 'IOS', iou: 'IOU' }
export const imageDirectory = (kind: string): string | undefined => imageDirectories[kind]
export const kindOfDirectory = (directory: string): string | undefined =>
  Object.keys(imageDirectories).find((kind) => imageDirectories[kind] === directory.toUpperCase())

/** A node as far as its images are concerned. */
interface ImageNode {
  readonly node_type: string
  readonly properties: Readonly<Record<string, unknown>>
}

/** Names of the properties of a node that name images. */
export const imageProperties = ({ node_type, properties }: ImageNode): string[] =>
  Object.keys(properties).filter(
    (key) =>
      (/^initrd$|image$/.test(key) || (node_type === 'iou' && key === 'path')) &&
      typeof properties[key] === 'string' &&
      properties[key] !== '',
  )
