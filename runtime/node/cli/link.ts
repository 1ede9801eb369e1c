import { endsText, linkState, linksNamed, linkText } from '../../../src/client/link-names.ts'
import type { LabLink, LabNode } from '../../../src/client/patchbay.ts'
import { type CommandContext, clientOf } from './client.ts'
import type { CommandInput, FlagValues } from './command.ts'
import type { linking } from './command-flags.ts'
import { CommandError, exits, wrongArguments } from './exits.ts'
import { linkJson, linkReasons, linkTable } from './inspect.ts'
import type { CommandOutcome } from './outcome.ts'
import { labOf, linksOf, nodeOf, nodesOf } from './targets.ts'

/** `patchbay link LAB[/LINK]`: shows the links of a lab, or one link; with flags it changes what the link does to frames. */
export async function link({
  args: [word = ''],
  flags,
  signal,
}: CommandInput<typeof linking>): Promise<CommandOutcome> {
  const context = { client: await clientOf(flags), signal }
  if (flags.suspend && flags.resume) throw wrongArguments('--suspend and --resume exclude each other')
  if (flags.there && flags.back)
    throw wrongArguments('use --there or --back; without both, both directions are changed')
  if (!/[/:]|--/.test(word)) return listLinks(word, flags, context)
  const { found, nodes } = await linkOf(word, context)
  const change = await changeOf(found, flags)
  const params = { project_id: found.project_id, link_id: found.link_id }
  const now =
    change === undefined
      ? found
      : await context.client.call('PUT /v2/projects/{project_id}/links/{link_id}', { params, body: change, signal })
  return {
    json: {
      ...linkJson(now, nodes),
      verdict_reason: now.verdict_reason,
      ...(now.path !== undefined && { path: now.path }),
      traffic_ab: now.traffic_ab,
      traffic_ba: now.traffic_ba,
    },
    async text() {
      const { impairmentText } = await import('../../../src/labfile/changed-impairment.ts')
      const { shown } = await import('./table.ts')
      const state = linkState(now)
      const reason = now.verdict_reason === null ? '' : ` (${now.verdict_reason})`
      const traffic = [
        ['there', now.traffic_ab],
        ['back', now.traffic_ba],
      ] as const
      return [
        linkText(now, nodes),
        `  state       ${state}${reason}`,
        `  impairment  ${impairmentText(now)}`,
        ...(now.path === 'kernel' ? ['  frames by   the kernel'] : []),
        ...traffic.flatMap(([way, it]) =>
          it === null ? [] : [`  ${way.padEnd(10)}  ${it.frames} frames, ${it.bytes} bytes, ${it.dropped} dropped`],
        ),
      ]
        .map(shown)
        .join('\n')
    },
  }
}

/** `patchbay link LAB`: the links of a lab. */
async function listLinks(
  word: string,
  flags: FlagValues<typeof linking>,
  context: CommandContext,
): Promise<CommandOutcome> {
  const { server: _, json: __, ...changes } = flags
  if (Object.values(changes).some((value) => value !== undefined && value !== false))
    throw wrongArguments('expected LAB/LINK', `"patchbay link ${word}" lists the links`)
  const lab = await labOf(word, context)
  const [nodes, links] = await Promise.all([nodesOf(lab, context), linksOf(lab, context)])
  return {
    json: { lab: lab.name, project_id: lab.project_id, links: links.map((one) => linkJson(one, nodes)) },
    async text() {
      const { shown } = await import('./table.ts')
      if (lab.status !== 'opened') return `${shown(lab.name)} is closed; "patchbay start ${lab.name}" opens it`
      if (links.length === 0) return `${shown(lab.name)} has no links`
      const reasons = linkReasons(links, nodes).map((reason) => shown(reason))
      return [await linkTable(links, nodes), ...(reasons.length > 0 ? [reasons.join('\n')] : [])].join('\n\n')
    },
  }
}

async function changeOf(found: LabLink, flags: FlagValues<typeof linking>) {
  const { server: _, json: __, suspend, resume, there, back, clear, ...words } = flags
  const isImpaired = clear || Object.values(words).some((it) => it !== undefined)
  if (!isImpaired && !suspend && !resume) return undefined
  const { filtersByFlags } = await import('./impairment.ts')
  const way = there ? 'there' : back ? 'back' : undefined
  return {
    ...(isImpaired && filtersByFlags(found, words, { way, clears: clear })),
    ...((suspend || resume) && { suspend }),
  }
}

/** The link that a word names: `LAB/NODE:PORT`, `LAB/NODE--NODE` or `LAB/NAME`. CommandError 1. */
export async function linkOf(word: string, context: CommandContext): Promise<{ found: LabLink; nodes: LabNode[] }> {
  const slash = word.indexOf('/')
  const lab = await labOf(
    slash === -1 ? (await nodeOf(word.split(/:|--/)[0] ?? '', context)).lab : word.slice(0, slash),
    context,
  )
  const [nodes, links] = await Promise.all([nodesOf(lab, context), linksOf(lab, context)])
  const found = linksNamed(word.slice(slash + 1), links, nodes)
  const [one] = found
  if (one !== undefined && found.length === 1) return { found: one, nodes }
  const list = (found.length > 0 ? found : links).slice(0, 20).map((it) => it.name ?? endsText(it, nodes))
  throw new CommandError(exits.failed, [
    {
      message:
        found.length > 0
          ? `${JSON.stringify(word)} names ${found.length} links: ${list.join(', ')}`
          : `the lab ${lab.name} has no link ${JSON.stringify(word.slice(slash + 1))}`,
      ...(found.length === 0 && list.length > 0 && { hint: `it has ${list.join(', ')}` }),
    },
  ])
}
