/** Adapter types: the name in nodes, and the code of VirtualBox. The first is the default. */
const types: readonly { readonly name: string; readonly code: string; readonly words: RegExp }[] = [
  { name: 'Intel PRO/1000 MT Desktop (82540EM)', code: '82540EM', words: /82540em|pro\/1000 mt desktop|^e1000$/ },
  { name: 'Intel PRO/1000 T Server (82543GC)', code: '82543GC', words: /82543gc|pro\/1000 t server/ },
  { name: 'Intel PRO/1000 MT Server (82545EM)', code: '82545EM', words: /82545em|pro\/1000 mt server/ },
  { name: 'PCnet-PCI II (Am79C970A)', code: 'Am79C970A', words: /am79c970a|pcnet-pci ii(?!i)|^pcnet$/ },
  { name: 'PCNet-FAST III (Am79C973)', code: 'Am79C973', words: /am79c973|pcnet-fast iii/ },
  { name: 'Paravirtualized Network (virtio-net)', code: 'virtio', words: /virtio/ },
]

export const adapterTypeNames: readonly string[] = types.map(({ name }) => name)

/** The adapter type that a text of a client means. */
export const adapterTypeOf = (text: string): string | undefined =>
  types.find(({ words }) => words.test(text.trim().toLowerCase()))?.name

/** The code of VirtualBox for an adapter type. */
export const adapterCode = (name: string): string => types.find((type) => type.name === name)?.code ?? '82540EM'
