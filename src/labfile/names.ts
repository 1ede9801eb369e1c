/** The name of a lab, in the form that a lab file takes: `a-z`, `0-9` and `-`, at most 63 characters. */
export function labName(name: string): string {
  const plain = name
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+/g, '')
    .slice(0, 63)
    .replace(/-+$/, '')
  return plain === '' ? 'lab' : plain
}

/** Names that differ in case alone are the same. */
export const keyOf = (name: string): string => name.toLowerCase()
