import { randomBytes } from 'node:crypto'
import { createWriteStream, existsSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ReadableStream } from 'node:stream/web'
import { causeOf } from '../../../src/compute/remote/answer.ts'
import { replaceFiles } from '../engine/storage/user-file.ts'
import { reasonOf } from '../os/system/error-reason.ts'
import { bytesText } from './bytes.ts'
import { clientOf } from './client.ts'
import type { CommandInput } from './command.ts'
import type { exporting } from './command-flags.ts'
import { CommandError, exits, wrongArguments } from './exits.ts'
import type { CommandOutcome } from './outcome.ts'
import { labOf } from './targets.ts'

type Input = CommandInput<typeof exporting>

/** `patchbay export LAB [FILE|-]`: a lab as a lab file, or as an archive with its disks. */
export async function exportCommand(input: Input): Promise<CommandOutcome> {
  const { args, flags, signal } = input
  const [word = '', given] = args
  const format = flags.format ?? (/\.gns3project$/i.test(given ?? '') ? 'gns3project' : 'lab')
  const isArchive = format === 'gns3project'
  if (!isArchive && (flags.images || flags.snapshots))
    throw wrongArguments('--images and --snapshots are for archives only', 'add --format gns3project')
  if (isArchive && given === '-' && (flags.json || process.stdout.isTTY === true))
    throw wrongArguments('an archive is not text', 'write it to a file, or to a pipe without --json')
  const context = { client: await clientOf(flags), signal }
  const lab = await labOf(word, context)
  const to = given ?? `${lab.name.replaceAll(/[/\\]/g, '-')}.${isArchive ? 'gns3project' : 'lab.yaml'}`
  if (to !== '-' && existsSync(to) && !flags.force)
    throw new CommandError(exits.failed, [
      {
        message: `${to} already exists`,
        hint: '--force overwrites it; "patchbay save" updates a lab file',
      },
    ])
  // One that is not there is a slip more often than a wish.
  if (!existsSync(dirname(to)))
    throw new CommandError(exits.failed, `${to} cannot be written: there is no directory ${dirname(to)}`)
  const params = { project_id: lab.project_id }
  if (!isArchive) {
    const name = 'GET /v2/projects/{project_id}/topology'
    const answer = await context.client.answer(name, { params, query: { format: 'yaml' }, signal })
    return labFile(await answer.text(), { lab: lab.name, to })
  }
  const query = {
    include_images: flags.images ? ('yes' as const) : ('no' as const),
    include_snapshots: flags.snapshots ? ('yes' as const) : ('no' as const),
  }
  const body = await context.client.stream('GET /v2/projects/{project_id}/export', { params, query, signal })
  const bytes = await archive(body as ReadableStream<Uint8Array>, to, signal)
  return {
    json: { lab: lab.name, file: to, format, bytes },
    text: () => (to === '-' ? '' : `${to}: the lab ${lab.name}, ${bytesText(bytes)}`),
  }
}

async function labFile(text: string, { lab, to }: { lab: string; to: string }): Promise<CommandOutcome> {
  const left = [...text.matchAll(/^# \* (.*)$/gm)].map(([, line = '']) => line)
  if (to !== '-') await replaceFiles([{ path: to, text }]).catch((error) => fail(to, error))
  const { shown } = await import('./table.ts')
  const lines = left.length === 0 ? [] : ['Not in the file', ...left.map((it) => `  ${shown(it)}`)]
  if (to === '-' && lines.length > 0) process.stderr.write(`${lines.join('\n')}\n`)
  return {
    json: { lab, file: to, format: 'lab', ...(to === '-' && { text }), left_out: left },
    ...(to === '-' && { isVerbatim: true }),
    text: () => (to === '-' ? text.trimEnd() : [`${to}: the lab ${lab}`, ...lines].join('\n')),
  }
}

/** Bytes of the last record of a zip file without a comment, and how it begins (APPNOTE.TXT, 4.3.16). */
const endBytes = 22
const endSignature = Buffer.from('PK\x05\x06', 'latin1')

/** Writes an archive: beside its destination first, so that a broken one never has the name. Resolves with its size, bytes. */
async function archive(body: ReadableStream<Uint8Array>, to: string, signal: AbortSignal): Promise<number> {
  let bytes = 0
  let end = Buffer.alloc(0)
  const counter = new Transform({
    transform(chunk: Buffer, _, done) {
      bytes += chunk.length
      end = Buffer.concat([end, chunk.subarray(-endBytes)]).subarray(-endBytes)
      done(null, chunk)
    },
    // workerd ends an answer of unknown length as if it were complete when it breaks off.
    flush(done) {
      done(end.subarray(0, endSignature.length).equals(endSignature) ? null : new Error('its end is missing'))
    },
  })
  const temporary = join(dirname(to), `.${basename(to)}.${randomBytes(6).toString('hex')}`)
  const target = to === '-' ? process.stdout : createWriteStream(temporary, { flags: 'wx', flush: true })
  try {
    await pipeline(Readable.fromWeb(body), counter, target, { signal, end: to !== '-' })
    if (to !== '-') await rename(temporary, to)
  } catch (error) {
    if (to !== '-') await rm(temporary, { force: true })
    signal.throwIfAborted()
    if ((error as NodeJS.ErrnoException).syscall !== undefined) return fail(to, error)
    const kept = to !== '-' ? 'nothing was saved' : `${bytesText(bytes)} were written to standard output`
    throw new CommandError(exits.noService, `the archive is incomplete: ${causeOf(error)}; ${kept}`, { cause: error })
  }
  return bytes
}

function fail(to: string, error: unknown): never {
  const target = to === '-' ? 'standard output' : to
  throw new CommandError(exits.failed, `${target} cannot be written: ${reasonOf(error)}`, { cause: error })
}
