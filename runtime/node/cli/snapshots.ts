import type { LabProject, LabSnapshot } from '../../../src/client/patchbay.ts'
import { counted } from '../../../src/lib/text/counted.ts'
import { bytesText } from './bytes.ts'
import { type CommandContext, clientOf } from './client.ts'
import type { CommandInput, serviceFlags } from './command.ts'
import type { confirming } from './command-flags.ts'
import { requireYes } from './confirm.ts'
import { notFound, wrongArguments } from './exits.ts'
import type { CommandOutcome } from './outcome.ts'
import { labOf } from './targets.ts'
import { timeText } from './times.ts'

const list = 'GET /v2/projects/{project_id}/snapshots'

/** `patchbay snapshot ls LAB`: the snapshots of a lab. */
export async function snapshotLs({
  args: [word = ''],
  flags,
  signal,
}: CommandInput<typeof serviceFlags>): Promise<CommandOutcome> {
  const context = { client: await clientOf(flags), signal }
  const lab = await labOf(word, context)
  const snapshots = await context.client.call(list, { params: { project_id: lab.project_id }, signal })
  return {
    json: { lab: lab.name, snapshots },
    async text() {
      const { shown, tableOf } = await import('./table.ts')
      if (snapshots.length === 0)
        return `${shown(lab.name)} has no snapshots; "patchbay snapshot create ${shown(lab.name)}" takes one`
      const rows = snapshots.map((it) => [it.name, timeText(it.created_at), it.running, bytesText(it.size)])
      return tableOf(['SNAPSHOT', 'TAKEN', 'RUNNING', 'SIZE'], rows)
    },
  }
}

/** `patchbay snapshot create LAB [NAME]`, or `LAB/NAME`: takes a snapshot. */
export async function snapshotCreate({
  args,
  flags,
  signal,
}: CommandInput<typeof serviceFlags>): Promise<CommandOutcome> {
  const [word, name = timeText(Date.now() / 1000)] = args.length === 1 ? inTwo(args[0]) : args
  const context = { client: await clientOf(flags), signal }
  const lab = await labOf(word, context, { opens: true })
  const params = { project_id: lab.project_id }
  const snapshot = await context.client.call('POST /v2/projects/{project_id}/snapshots', {
    params,
    body: { name },
    signal,
  })
  return {
    json: { lab: lab.name, snapshot },
    async text() {
      const { shown } = await import('./table.ts')
      const running = snapshot.running === 0 ? '' : `, with ${counted(snapshot.running, 'node')} running`
      return shown(`Took ${lab.name}/${snapshot.name}: ${bytesText(snapshot.size)}${running}`)
    },
  }
}

/** `patchbay snapshot restore LAB SNAPSHOT`, or `LAB/SNAPSHOT`: makes a lab what it was. */
export async function snapshotRestore({
  args,
  flags,
  signal,
}: CommandInput<typeof confirming>): Promise<CommandOutcome> {
  const [wanted, other] = wantedOf(args)
  if (wanted === undefined || other !== undefined)
    throw wrongArguments(`expected one snapshot, got ${args.map((it) => JSON.stringify(it)).join(' ')}`)
  const context = { client: await clientOf(flags), signal }
  const { lab, snapshot } = await snapshotOf(wanted, context)
  await requireYes(`Restore ${lab.name} to ${snapshot.name}? Changes since then are lost.`, flags, 'restored')
  const params = { project_id: lab.project_id, snapshot_id: snapshot.snapshot_id }
  await context.client.call('POST /v2/projects/{project_id}/snapshots/{snapshot_id}/restore', { params, signal })
  return {
    json: { lab: lab.name, snapshot },
    async text() {
      const { shown } = await import('./table.ts')
      const running = snapshot.running === 0 ? '' : '; nodes that were running then are started again'
      return shown(`Restored ${lab.name} to ${timeText(snapshot.created_at)}${running}`)
    },
  }
}

/** `patchbay snapshot rm LAB SNAPSHOT...`, or `LAB/SNAPSHOT...`: deletes snapshots. */
export async function snapshotRm({ args, flags, signal }: CommandInput<typeof serviceFlags>): Promise<CommandOutcome> {
  const wanted = wantedOf(args)
  const context = { client: await clientOf(flags), signal }
  // All are found before one is deleted.
  const found = []
  for (const it of wanted) found.push(await snapshotOf(it, context))
  for (const { lab, snapshot } of found) {
    const params = { project_id: lab.project_id, snapshot_id: snapshot.snapshot_id }
    await context.client.call('DELETE /v2/projects/{project_id}/snapshots/{snapshot_id}', { params, signal })
  }
  const names = found.map(({ lab, snapshot }) => `${lab.name}/${snapshot.name}`)
  return {
    json: { deleted: found.map(({ lab, snapshot }) => ({ lab: lab.name, snapshot })) },
    async text() {
      const { shown } = await import('./table.ts')
      return shown(`Deleted ${names.join(', ')}`)
    },
  }
}

/** `LAB/NAME` in two; a lab alone has no name. */
function inTwo(word = ''): [lab: string, name?: string] {
  const slash = word.indexOf('/')
  return slash === -1 ? [word] : [word.slice(0, slash), word.slice(slash + 1)]
}

interface Wanted {
  readonly lab: string
  readonly name: string
}

/** The snapshots that words name: after a lab alone its snapshots, else `LAB/SNAPSHOT` each. CommandError 64. */
function wantedOf(words: readonly string[]): Wanted[] {
  const [first = '', ...others] = words
  if (!first.includes('/') && others.length > 0) return others.map((name) => ({ lab: first, name }))
  return words.map((word) => {
    const [lab, name] = inTwo(word)
    if (name !== undefined) return { lab, name }
    throw wrongArguments(
      `expected LAB/SNAPSHOT, got ${JSON.stringify(word)}`,
      `"patchbay snapshot ls ${word}" lists the snapshots of a lab`,
    )
  })
}

/** A snapshot by its name or id. CommandError 1. */
async function snapshotOf(
  wanted: Wanted,
  context: CommandContext,
): Promise<{ lab: LabProject; snapshot: LabSnapshot }> {
  const { name } = wanted
  const lab = await labOf(wanted.lab, context)
  const snapshots = await context.client.call(list, { params: { project_id: lab.project_id }, signal: context.signal })
  const snapshot = snapshots.find((it) => it.name === name || it.snapshot_id === name)
  if (snapshot !== undefined) return { lab, snapshot }
  const names = snapshots.map((it) => it.name)
  const message = `the lab ${lab.name} has no snapshot ${JSON.stringify(name)}`
  throw notFound(message, name, names, `"patchbay snapshot ls ${lab.name}" lists them`)
}
