import { createHash } from 'node:crypto'
import { createReadStream, openAsBlob } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Image } from '../../../src/client/patchbay.ts'
import { PatchbayError } from '../../../src/client/patchbay-error.ts'
import { compareText } from '../../../src/lib/text/compare-text.ts'
import { type ImageKindName, imageKinds } from '../../../src/model/image.ts'
import { kindOf } from '../../../src/model/kinds/node.ts'
import { isImageOf } from '../drivers/index.ts'
import { begins } from '../engine/storage/file-head.ts'
import { reasonOf } from '../os/system/error-reason.ts'
import { bytesText } from './bytes.ts'
import { type CommandContext, clientOf } from './client.ts'
import type { CommandInput, serviceFlags } from './command.ts'
import type { imageChoosing, imagePushing } from './command-flags.ts'
import { CommandError, exits, notFound, wrongArguments } from './exits.ts'
import type { CommandOutcome } from './outcome.ts'
import { type Progress, progressOf } from './progress.ts'
import { nodeOf } from './targets.ts'

interface KindImage extends Image {
  readonly kind: ImageKindName
}

/** A part of an upload, bytes: also what a gateway on a Worker takes in one request. */
const partBytes = 16 << 20
/** Timeout for making an image of a node, ms. */
const makingMs = 1_800_000
/** Times between tries after a lost connection, ms. */
const pausesMs = [500, 1000, 2000, 5000, 10_000]

/** `patchbay images ls`: the images of a service. */
export async function imagesLs({ flags, signal }: CommandInput<typeof serviceFlags>): Promise<CommandOutcome> {
  const context = { client: await clientOf(flags), signal }
  const images = await imagesOf(context)
  return {
    json: { server: context.client.server, images },
    async text() {
      if (images.length === 0) return `No images on ${context.client.server}; "patchbay images push FILE" uploads one`
      const { tableOf } = await import('./table.ts')
      const rows = images.map((it) => [it.path, it.kind, bytesText(it.filesize), (it.sha256 ?? '-').slice(0, 12)])
      return tableOf(['IMAGE', 'KIND', 'SIZE', 'SHA256'], rows)
    },
  }
}

/** `patchbay images push FILE...`: brings images to a service; goes on where an earlier push ended. */
export async function imagesPush({ args, flags, signal }: CommandInput<typeof imagePushing>): Promise<CommandOutcome> {
  if (flags.name !== undefined && args.length > 1) throw wrongArguments('--name can be used with one FILE only')
  const context = { client: await clientOf(flags), signal }
  return pushedOutcome(await pushFiles(args, context, flags))
}

/** Says what was pushed. */
export function pushedOutcome(pushed: readonly Pushed[]): CommandOutcome {
  return {
    json: { images: pushed },
    async text() {
      const { shown } = await import('./table.ts')
      return pushed
        .map(({ image, kind, bytes, sent }) =>
          shown(
            sent === 0 ? `${image}: already on the service` : `${image}: pushed ${bytesText(bytes)} (kind ${kind})`,
          ),
        )
        .join('\n')
    },
  }
}

type PushFlags = Pick<CommandInput<typeof imagePushing>['flags'], 'kind' | 'name' | 'force' | 'json'>

/** Brings images to a service. All files are looked at before one is sent: CommandError 3 for what is no image, 64 without its kind. */
export async function pushFiles(
  names: readonly string[],
  context: CommandContext,
  flags: PushFlags,
): Promise<readonly Pushed[]> {
  const files = []
  for (const name of names) files.push(await fileOf(name, flags))
  const known = await imagesOf(context)
  const pushed: Pushed[] = []
  for (const file of files) pushed.push(await push(file, { ...context, flags, known }))
  return pushed
}

/** `patchbay images rm IMAGE...`: deletes images. */
export async function imagesRm({ args, flags, signal }: CommandInput<typeof imageChoosing>): Promise<CommandOutcome> {
  const context = { client: await clientOf(flags), signal }
  const found = args.map(await imageFinder(context, flags.kind))
  for (const { kind, path } of found)
    await context.client.call(`DELETE /v2/compute/${kind}/images/{filename}`, { params: { filename: path }, signal })
  return {
    json: { deleted: found },
    async text() {
      const { shown } = await import('./table.ts')
      return shown(`Deleted ${found.map(({ path }) => path).join(', ')}`)
    },
  }
}

/** `patchbay images make LAB/NODE NAME`: makes an image of a node, for other nodes to start from. */
export async function imagesMake({
  args: [word = '', name = ''],
  flags,
  signal,
}: CommandInput<typeof serviceFlags>): Promise<CommandOutcome> {
  const client = await clientOf(flags)
  const { node } = await nodeOf(word, { client, signal })
  const { project_id, node_id } = node
  const image = await client.call('POST /v2/projects/{project_id}/nodes/{node_id}/image', {
    params: { project_id, node_id },
    body: JSON.stringify({ name }),
    signal,
    timeoutMs: makingMs,
  })
  return {
    json: { made: image },
    async text() {
      const { shown } = await import('./table.ts')
      return shown(`Made ${image.path}: ${bytesText(image.filesize)}`)
    },
  }
}

/** `patchbay images rename OLD NEW`: gives an image another name. */
export async function imagesRename({
  args: [old = '', path = ''],
  flags,
  signal,
}: CommandInput<typeof imageChoosing>): Promise<CommandOutcome> {
  const context = { client: await clientOf(flags), signal }
  const find = await imageFinder(context, flags.kind)
  const { kind } = find(old)
  await context.client.call(`PUT /v2/compute/${kind}/images/{filename}`, {
    params: { filename: old },
    body: { path },
    signal,
  })
  return {
    json: { renamed: { kind, from: old, to: path } },
    async text() {
      const { shown } = await import('./table.ts')
      return shown(`Renamed ${old} to ${path}`)
    },
  }
}

/** Finds an image by its name, and the kind that the user names. CommandError 1 when there is none, 64 when there are several. */
export async function imageFinder(
  context: CommandContext,
  kindWord: string | undefined,
): Promise<(word: string) => KindImage> {
  const kind = kindNamed(kindWord)
  const images = (await imagesOf(context)).filter((it) => kind === undefined || it.kind === kind)
  return (word) => {
    const fits = images.filter(({ path }) => path === word)
    const [one, ...others] = fits
    if (others.length > 0)
      throw wrongArguments(
        `${word}: several kinds have an image of this name: ${fits.map((image) => image.kind).join(', ')}`,
        '--kind KIND selects one',
      )
    if (one !== undefined) return one
    const names = images.map(({ path }) => path)
    const message = `there is no image ${JSON.stringify(word)} on ${context.client.server}`
    throw notFound(message, word, names, '"patchbay images ls" lists them')
  }
}

/** The images of all kinds, by name. */
export async function imagesOf({ client, signal }: CommandContext): Promise<KindImage[]> {
  const lists = await Promise.all(
    imageKinds.map(async (kind) =>
      (await client.call(`GET /v2/compute/${kind}/images`, { signal })).map((image): KindImage => ({ ...image, kind })),
    ),
  )
  return lists.flat().sort((a, b) => compareText(a.path, b.path))
}

export interface Pushed {
  readonly image: string
  readonly kind: ImageKindName
  /** Bytes. */
  readonly bytes: number
  readonly sha256: string
  /** Bytes that were sent now; 0: the service had the image. */
  readonly sent: number
}

interface ImageFile {
  readonly file: string
  readonly name: string
  readonly kind: ImageKindName
  readonly size: number
}

/** A file that is to be pushed. CommandError 3 for what is no image, 64 without its kind. */
async function fileOf(
  file: string,
  { kind, name = basename(file) }: { readonly kind: string | undefined; readonly name: string | undefined },
): Promise<ImageFile> {
  const refused = (reason: string) => new CommandError(exits.wrong, `${file}: ${reason}`)
  const found = await stat(file).catch((error) => {
    throw refused(reasonOf(error))
  })
  if (!found.isFile()) throw refused(found.isDirectory() ? 'it is a directory, not a file' : 'it is not a regular file')
  if (found.size === 0) throw refused('it is empty')
  const guess = kindNamed(kind) ?? (await kindOfFile(file))
  if (guess === undefined)
    throw wrongArguments(
      `${file}: its kind cannot be detected from its name and content`,
      `set --kind: ${imageKinds.join(', ')}`,
    )
  return { file, name, kind: guess, size: found.size }
}

/** The kind that a user names. CommandError 64. */
function kindNamed(word: string | undefined): ImageKindName | undefined {
  const kind = imageKinds.find((it) => it === word)
  if (word !== undefined && kind === undefined)
    throw wrongArguments(`--kind: expected one of ${imageKinds.join(', ')}, got ${JSON.stringify(word)}`)
  return kind
}

const diskImageKinds = imageKinds.filter((kind) => kindOf(kind).image?.isDisk === true)
const otherImageKinds = imageKinds.filter((kind) => !diskImageKinds.includes(kind))

/** Names of disks and CDs whose first bytes say nothing. */
const diskNames = /\.(qcow2?|img|iso|vmdk|vdi|raw|vhdx?|fd)$/i
/** The first bytes of qcow2, VMDK and VDI. */
const diskMagics = ['QFI\xfb', 'KDMV', '<<< ']

/** The kind of which the service would list an image; undefined: not known. */
async function kindOfFile(file: string): Promise<ImageKindName | undefined> {
  const isDisk = await begins(file, (head) => diskMagics.includes(head.toString('latin1', 0, 4)))
  const mayBeDisk = isDisk || diskNames.test(file)
  // Almost every file can be a disk: such kinds come last.
  for (const kind of [...otherImageKinds, ...(mayBeDisk ? diskImageKinds : [])])
    if (await isImageOf(kind, file, basename(file))) return kind
  return undefined
}

async function push(
  { file, name, kind, size }: ImageFile,
  {
    client,
    signal,
    flags,
    known,
  }: CommandContext & {
    readonly flags: { readonly json: boolean; readonly force: boolean }
    readonly known: KindImage[]
  },
): Promise<Pushed> {
  const reading = await progressOf(`Reading ${name}`, { ...flags, unit: 'bytes' })
  const digest = await digestOf(file, size, reading, signal)
  const sha256 = digest.toString('hex')
  const done = { image: name, kind, bytes: size, sha256 }
  const there = known.find((it) => it.kind === kind && it.path === name)
  if (there?.sha256 === sha256) return { ...done, sent: 0 }
  if (there !== undefined && !flags.force)
    throw new CommandError(exits.failed, [
      {
        message: `${name} already exists with different content; nodes may need it`,
        hint: '--force replaces it, --name NAME pushes the file under another name',
      },
    ])
  const progress = await progressOf(`Pushing ${name}`, { ...flags, unit: 'bytes' })
  const part = `POST /v2/compute/${kind}/images/{filename}` as const
  const params = { filename: name }
  const content = await openAsBlob(file)
  /** Sends a part, or asks what is there; resolves with the number of bytes that are stored. */
  const send = async (first: number | undefined): Promise<number> => {
    const last = first === undefined ? undefined : Math.min(first + partBytes, size) - 1
    const range = first === undefined ? '*' : `${first}-${last}`
    const answer = await client.answer(part, {
      params,
      signal,
      accepts: [308],
      body: first === undefined || last === undefined ? new Blob([]) : content.slice(first, last + 1),
      headers: {
        'content-range': `bytes ${range}/${size}`,
        'repr-digest': `sha-256=:${digest.toString('base64')}:`,
      },
    })
    await answer.body?.cancel()
    if (answer.status !== 308) return size
    return Number(/^bytes=0-(\d+)$/.exec(answer.headers.get('range') ?? '')?.[1] ?? -1) + 1
  }
  try {
    const begin = await lasting(() => send(undefined), signal)
    for (let stored = begin; stored < size; ) {
      progress.at(stored, size)
      const first = stored
      stored = await lasting((isAgain) => (isAgain ? send(undefined) : send(first)), signal)
    }
    return { ...done, sent: size - begin }
  } catch (error) {
    if (!signal.aborted) throw error
    throw new CommandError(exits.interrupted, [
      { message: `interrupted while pushing ${name}`, hint: 'the same command resumes the upload' },
    ])
  } finally {
    progress.end()
  }
}

/** Repeats an operation after a lost connection. */
async function lasting(run: (isAgain: boolean) => Promise<number>, signal: AbortSignal): Promise<number> {
  for (const [index, pauseMs] of [...pausesMs, undefined].entries())
    try {
      return await run(index > 0)
    } catch (error) {
      if (!(error instanceof PatchbayError) || error.status !== 0 || pauseMs === undefined) throw error
      await sleep(pauseMs, undefined, { signal })
    }
  throw new Error('unreachable')
}

async function digestOf(file: string, size: number, progress: Progress, signal: AbortSignal): Promise<Buffer> {
  const hash = createHash('sha256')
  let read = 0
  try {
    for await (const piece of createReadStream(file, { highWaterMark: 1 << 20, signal })) {
      hash.update(piece as Buffer)
      read += (piece as Buffer).length
      progress.at(read, size)
    }
  } catch (error) {
    signal.throwIfAborted()
    throw new CommandError(exits.wrong, `${file}: ${reasonOf(error)}`, { cause: error })
  } finally {
    progress.end()
  }
  return hash.digest()
}
