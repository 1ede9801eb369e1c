import type { ConvertedLab } from '../../../src/importers/draft.ts'

/** An imported lab in a few words: nodes and their kinds, segments and links, the images that it needs, and what was left out. */
export function outline({ file, nodes, images, leftOut }: ConvertedLab) {
  const kindOf = (fields: Readonly<Record<string, unknown>>) =>
    String(fields.kind ?? file.templates?.[String(fields.is)]?.kind)
  const short = (kind: string) => (kind === 'machine-emulator' ? 'machine' : kind)
  const link = (value: unknown): string => {
    const { ends, ...more } = Array.isArray(value) ? { ends: value } : (value as { ends: string[] })
    return [ends.join(' -- '), ...Object.entries(more).map(([key, it]) => `${key}=${it}`)].join(' ')
  }
  const member = (value: unknown): string => {
    const { end, port } = typeof value === 'string' ? { end: value } : (value as { end: string; port?: number })
    return port === undefined ? end : `${end} at ${port}`
  }
  const cannotRun = nodes.filter((it) => it.cannotRun !== undefined).map(({ name }) => name)
  return {
    ...(cannotRun.length > 0 && { cannotRun: cannotRun.join(', ') }),
    nodes: Object.entries(file.nodes)
      .map(([name, fields]) => `${name} ${short(kindOf(fields))}`)
      .join(', '),
    links: [
      ...Object.entries(file.segments ?? {}).map(
        ([name, { kind, members }]) => `${name} ${kind}: ${(members as unknown[]).map(member).join(', ')}`,
      ),
      ...(file.links ?? []).map(link),
    ].join('; '),
    images: images.map(({ image, md5 }) => (md5 === undefined ? image : `${image} (${md5})`)).join(', '),
    leftOut: [...new Set(leftOut.map(({ path }) => path))].join(', '),
  }
}
