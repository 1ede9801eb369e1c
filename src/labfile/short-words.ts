import type { NodeKindName } from '../model/kinds/node.ts'

/** Short words for kinds in lab files. */
export const shortWords = { machine: 'machine-emulator', vm: 'hypervisor' } as const satisfies Record<
  string,
  NodeKindName
>

/** The word for a kind that the printed file has. */
export const wordOfKind = (kind: string): string =>
  Object.entries(shortWords).find(([, name]) => name === kind)?.[0] ?? kind
