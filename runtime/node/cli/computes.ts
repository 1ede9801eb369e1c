import type { Compute } from '../../../src/client/patchbay.ts'
import { PatchbayError } from '../../../src/client/patchbay-error.ts'
import { counted } from '../../../src/lib/text/counted.ts'
import { type CommandContext, clientOf, originOf } from './client.ts'
import type { CommandInput, serviceFlags } from './command.ts'
import type { computeAdding, draining } from './command-flags.ts'
import { CommandError, exits, notFound } from './exits.ts'
import type { CommandOutcome } from './outcome.ts'
import { progressOf } from './progress.ts'
import { jobEnd } from './run-nodes.ts'
import { secretInput } from './secret-input.ts'
import { computeNames } from './targets.ts'

/** `patchbay computes ls`: the machines of the fleet. */
export async function computesLs({ flags, signal }: CommandInput<typeof serviceFlags>): Promise<CommandOutcome> {
  const client = await clientOf(flags)
  const computes = await client.call('GET /v2/computes', { signal })
  return {
    json: { server: client.server, computes },
    async text() {
      const { shown, tableOf } = await import('./table.ts')
      const rows = computes.map((it) => [
        it.name,
        it.compute_id,
        it.connected ? (it.accepts_projects ? 'ready' : 'no new labs') : 'not connected',
        percentText(it.cpu_usage_percent),
        percentText(it.memory_usage_percent),
        [...it.labels, ...(it.capabilities.labels ?? [])].join(' ') || '-',
        it.capabilities.version ?? '-',
      ])
      const errors = computes.filter((it) => it.last_error !== null).map((it) => `${it.name}: ${it.last_error}`)
      const table = tableOf(['COMPUTE', 'ID', 'STATE', 'CPU', 'MEMORY', 'LABELS', 'VERSION'], rows)
      return [table, ...(errors.length > 0 ? ['', ...errors.map(shown)] : [])].join('\n')
    },
  }
}

const percentText = (percent: number | null): string => (percent === null ? '-' : `${Math.round(percent)}%`)

/** `patchbay computes add URL`: registers a compute. */
export async function computesAdd({
  args: [word = ''],
  flags,
  signal,
}: CommandInput<typeof computeAdding>): Promise<CommandOutcome> {
  const url = new URL(
    originOf(word, 'URL', 'set the user with --user; the password is typed, or read from standard input'),
  )
  const protocol = url.protocol === 'https:' ? 'https' : 'http'
  const client = await clientOf(flags)
  const password =
    flags.user === undefined ? undefined : await secretInput(`Password of ${flags.user} at ${url.origin}`, 'a password')
  const compute = await client.call('POST /v2/computes', {
    body: {
      protocol,
      host: url.hostname,
      port: Number(url.port || (protocol === 'https' ? 443 : 80)),
      ...(flags.id !== undefined && { compute_id: flags.id }),
      ...(flags.name !== undefined && { name: flags.name }),
      ...(flags.label.length > 0 && { labels: [...flags.label] }),
      ...(flags.user !== undefined && { user: flags.user, password: password ?? null }),
    },
    signal,
  })
  return {
    json: { compute },
    async text() {
      const { shown } = await import('./table.ts')
      return shown(
        compute.connected
          ? `Added ${compute.name}; it is connected (version ${compute.capabilities.version})`
          : `Added ${compute.name}; it is not connected yet: ${compute.last_error ?? 'not tried yet'}`,
      )
    },
  }
}

/** `patchbay computes rm COMPUTE...`: removes computes from the fleet. */
export async function computesRm({ args, flags, signal }: CommandInput<typeof serviceFlags>): Promise<CommandOutcome> {
  const context = { client: await clientOf(flags), signal }
  const found = await computesNamed(args, context)
  for (const { compute_id } of found)
    await context.client.call('DELETE /v2/computes/{compute_id}', { params: { compute_id }, signal })
  return {
    json: { removed: found.map(({ compute_id, name }) => ({ compute_id, name })) },
    async text() {
      const { shown } = await import('./table.ts')
      return shown(`Removed ${found.map(({ name }) => name).join(', ')}; the nodes there keep running`)
    },
  }
}

/** `patchbay computes drain COMPUTE`: moves its stopped labs to other computes; with `--undo` it takes new labs again. */
export async function computesDrain({
  args: [word = ''],
  flags,
  signal,
}: CommandInput<typeof draining>): Promise<CommandOutcome> {
  const context = { client: await clientOf(flags), signal }
  const found = await computesNamed([word], context).catch((error: unknown) => {
    if (error instanceof CommandError && !flags.undo) return error
    throw error
  })
  // A compute that was removed from the fleet has no name any more, and may still have labs.
  const [{ compute_id, name } = { compute_id: word, name: word }] = found instanceof CommandError ? [] : found
  if (flags.undo) return takesLabs(compute_id, context)
  const nameOf = await computeNames(context)
  const params = { compute_id }
  const begun = await context.client.call('POST /v2/computes/{compute_id}/drain', { params, signal }).catch((error) => {
    throw found instanceof CommandError && error instanceof PatchbayError && error.status === 404 ? found : error
  })
  const progress = await progressOf(`Draining ${name}`, flags)
  const job = await jobEnd(begun.job_id, { ...context, progress }).catch((error) => {
    if (!signal.aborted) throw error
    const message = `interrupted while draining ${name}; labs that were moved stay there`
    throw new CommandError(exits.interrupted, [{ message, hint: `"patchbay computes drain ${name}" continues it` }])
  })
  const { projects = [], total, done, skipped, failed } = job
  return {
    exit: job.status === 'done' ? (skipped > 0 ? exits.withheld : exits.done) : exits.failed,
    json: { job },
    async text() {
      const { shown, tableOf } = await import('./table.ts')
      if (total === 0) return shown(`${name} has no labs, and gets no new ones`)
      const rows = projects.map((it) => [
        it.name,
        it.state === 'done' ? 'moved' : it.state === 'skipped' ? 'stays' : it.state,
        it.compute_id === null ? '' : nameOf(it.compute_id),
        it.reason ?? '',
      ])
      const rest = [
        ...(skipped > 0 ? [`${skipped} ${skipped === 1 ? 'stays' : 'stay'}`] : []),
        ...(failed > 0 ? [`${failed} failed`] : []),
      ]
      const sum = shown([`${done} of ${counted(total, 'lab')} moved from ${name}`, ...rest].join(', '))
      return [tableOf(['LAB', 'STATE', 'NOW AT', 'REASON'], rows), '', sum].join('\n')
    },
  }
}

async function takesLabs(compute_id: string, { client, signal }: CommandContext): Promise<CommandOutcome> {
  const body = { accepts_projects: true }
  const compute = await client.call('PUT /v2/computes/{compute_id}', { params: { compute_id }, body, signal })
  return {
    json: { compute },
    async text() {
      const { shown } = await import('./table.ts')
      return shown(`${compute.name} accepts new labs again`)
    },
  }
}

/** `patchbay computes label COMPUTE [LABEL...]`: gives a compute its labels. */
export async function computesLabel({
  args: [word = '', ...labels],
  flags,
  signal,
}: CommandInput<typeof serviceFlags>): Promise<CommandOutcome> {
  const context = { client: await clientOf(flags), signal }
  const [{ compute_id } = { compute_id: word }] = await computesNamed([word], context)
  const compute = await context.client.call('PUT /v2/computes/{compute_id}', {
    params: { compute_id },
    body: { labels },
    signal,
  })
  return {
    json: { compute },
    async text() {
      const { shown } = await import('./table.ts')
      return shown(
        labels.length > 0
          ? `Set the labels of ${compute.name}: ${labels.join(' ')}`
          : `Removed the labels that were set for ${compute.name}`,
      )
    },
  }
}

/** The computes that words name, by id or name. CommandError 1, also for a name that several have. */
async function computesNamed(words: readonly string[], { client, signal }: CommandContext): Promise<Compute[]> {
  const all = await client.call('GET /v2/computes', { signal })
  return words.map((word) => {
    const named = all.filter((compute) => compute.name === word)
    const found = all.find((compute) => compute.compute_id === word) ?? named[0]
    if (found !== undefined && found.compute_id !== word && named.length > 1)
      throw new CommandError(exits.failed, [
        {
          message: `${named.length} computes have the name ${JSON.stringify(word)}`,
          hint: `give an id: ${named.map(({ compute_id }) => compute_id).join(', ')}`,
        },
      ])
    if (found !== undefined) return found
    const known = all.flatMap(({ compute_id, name }) => [compute_id, name])
    const message = `there is no compute ${JSON.stringify(word)} on ${client.server}`
    throw notFound(message, word, known, '"patchbay computes ls" lists them')
  })
}
