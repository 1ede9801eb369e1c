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

/** How the name of a file of each format ends, without a dot; the first one is for names that are not given. */
const endings = { lab: 'lab.yaml', gns3project: 'gns3project', containerlab: 'clab.yml' } as const
type Format = keyof typeof endings

function formatOf(file = ''): Format {
  if (/\.gns3project$/i.test(file)) return 'gns3project'
  return /\.clab\.ya?ml$/i.test(file) ? 'containerlab' : 'lab'
}

/** `patchbay export LAB [FILE|-]`: a lab as a lab file, as an archive with its disks, or as a topology of containerlab. */
export async function exportCommand(input: Input): Promise<CommandOutcome> {
  const { args, flags, signal } = input
  const [word = '', given] = args
  const format = (flags.format as Format | undefined) ?? formatOf(given)
  const isArchive = format === 'gns3project'
  if (!isArchive && (flags.images || flags.snapshots))
    throw wrongArguments('--images and --snapshots are for archives only', 'add --format gns3project')
  if (isArchive && given === '-' && (flags.json || process.stdout.isTTY === true))
    throw wrongArguments('an archive is not text', 'write it to a file, or to a pipe without --json')
  const context = { client: await clientOf(flags), signal }
  const lab = await labOf(word, context)
  const to = given ?? `${lab.name.replaceAll(/[/\\]/g, '-')}.${endings[format]}`
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
    const text = await answer.text()
    const target = { lab: lab.name, to, force: flags.force }
    return format === 'lab' ? labFile(text, target) : topology(text, target)
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

interface Target {
  readonly lab: string
  readonly to: string
  /** Whether files that are there are overwritten. */
  readonly force: boolean
}

async function labFile(text: string, { lab, to }: Target): Promise<CommandOutcome> {
  const left = leftOutOf(text)
  if (to !== '-') await replaceFiles([{ path: to, text }]).catch((error) => fail(to, error))
  return written({ lab, to, format: 'lab', text, left, files: [] })
}

/** What a lab file says that it lacks of its lab. */
const leftOutOf = (text: string): string[] => [...text.matchAll(/^# \* (.*)$/gm)].map(([, line = '']) => line)

/** A lab file as a topology of containerlab, with the files of its containers beside it. */
async function topology(document: string, { lab, to, force }: Target): Promise<CommandOutcome> {
  const [{ containerlabOf }, { readLabFile }] = await Promise.all([
    import('../../../src/exporters/containerlab.ts'),
    import('../../../src/labfile/read.ts'),
  ])
  const { text, containers, files, leftOut } = containerlabOf(await readLabFile(document))
  if (containers === 0)
    throw new CommandError(exits.failed, `${lab} has no containers, of which a topology of containerlab is made`)
  const beside = files.map((file) => ({
    ...file,
    path: join(dirname(to), file.path),
    mode: Number.parseInt(file.mode, 8),
  }))
  const taken = to === '-' || force ? undefined : beside.find(({ path }) => existsSync(path))
  if (taken !== undefined)
    throw new CommandError(exits.failed, [
      { message: `${taken.path} already exists`, hint: '--force overwrites it; nothing was exported' },
    ])
  if (to !== '-') await replaceFiles([...beside, { path: to, text }]).catch((error) => fail(to, error))
  const missing = to === '-' ? files.map(({ path }) => `The file ${path}, which is written beside a FILE.`) : []
  const names = to === '-' ? [] : beside.map(({ path }) => path)
  return written({
    lab,
    to,
    format: 'containerlab',
    text,
    left: [...leftOutOf(document), ...leftOut, ...missing],
    files: names,
  })
}

interface Written extends Omit<Target, 'force'> {
  readonly format: Format
  readonly text: string
  /** What of the lab is not there. */
  readonly left: readonly string[]
  /** Files beside the file. */
  readonly files: readonly string[]
}

async function written({ lab, to, format, text, left, files }: Written): Promise<CommandOutcome> {
  const { shown } = await import('./table.ts')
  const lines = left.length === 0 ? [] : ['Not in the file', ...left.map((it) => `  ${shown(it)}`)]
  if (to === '-' && lines.length > 0) process.stderr.write(`${lines.join('\n')}\n`)
  return {
    json: {
      ...{ lab, file: to, format },
      ...(to === '-' && { text }),
      ...(files.length > 0 && { files }),
      left_out: left,
    },
    ...(to === '-' && { isVerbatim: true }),
    text() {
      if (to === '-') return text.trimEnd()
      return [`${to}: the lab ${lab}`, ...files.map((file) => `  ${shown(file)}`), ...lines].join('\n')
    },
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
