/** Nodes, links and drawings in words: `R1 and 2 links`. */
export function objectsText(nodes: readonly string[], links: number, drawings: number): string {
  const [only] = nodes
  const parts = [
    ...(only === undefined ? [] : [nodes.length === 1 ? only : counted(nodes.length, 'node')]),
    ...(links === 0 ? [] : [counted(links, 'link')]),
    ...(drawings === 0 ? [] : [counted(drawings, 'drawing')]),
  ]
  return [parts.slice(0, -1).join(', '), parts.at(-1) ?? ''].filter((text) => text !== '').join(' and ')
}

const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`
