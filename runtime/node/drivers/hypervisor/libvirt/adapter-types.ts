/** Network card models of QEMU, by their names in libvirt; the first is the default. */
export const adapterTypes: readonly string[] = [
  ...['e1000', 'e1000e', 'virtio', 'rtl8139', 'pcnet', 'ne2k_pci', 'vmxnet3', 'igb', 'i82551', 'i82557b', 'i82559er'],
  ...['virtio-transitional', 'virtio-non-transitional', 'tulip'],
]

/** The models for names of VirtualBox, in any spelling, by chip number or word. */
const words: readonly (readonly [RegExp, string])[] = [
  [/am79c97[03]|pcnet/, 'pcnet'],
  [/8254[035]/, 'e1000'],
  [/82574/, 'e1000e'],
  [/82576/, 'igb'],
  [/82551/, 'i82551'],
  [/82557/, 'i82557b'],
  [/82559/, 'i82559er'],
  [/virtio|paravirtual/, 'virtio'],
  [/rtl ?8139|8139/, 'rtl8139'],
  [/vmxnet/, 'vmxnet3'],
  [/ne2000|ne2k/, 'ne2k_pci'],
  [/pro\/?1000/, 'e1000'],
]

/** The model that a text of a client means. */
export function adapterType(text: string): string | undefined {
  const word = text.trim().toLowerCase()
  const named = adapterTypes.find((it) => it === word || it === word.replace(/-net(-pci)?$|-pci$/, ''))
  return named ?? words.find(([pattern]) => pattern.test(word))?.[1]
}
