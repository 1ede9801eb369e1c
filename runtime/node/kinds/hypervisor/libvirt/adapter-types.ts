/** Models of QEMU's network cards, by libvirt's names; the first is what is taken when none is said. */
export const adapterTypes: readonly string[] = [
  ...['e1000', 'e1000e', 'virtio', 'rtl8139', 'pcnet', 'ne2k_pci', 'vmxnet3', 'igb', 'i82551', 'i82557b', 'i82559er'],
  ...['virtio-transitional', 'virtio-non-transitional', 'tulip'],
]

/** What clients of VirtualBox say, in any spelling: by the number of the chip, or by the word for it. */
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

/** The model that a text means, else undefined. */
export function adapterType(text: string): string | undefined {
  const wanted = text.trim().toLowerCase()
  const named = adapterTypes.find((it) => it === wanted || it === wanted.replace(/-net(-pci)?$|-pci$/, ''))
  return named ?? words.find(([pattern]) => pattern.test(wanted))?.[1]
}
