import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { imageKinds } from '../../../src/model/image.ts'
import {
  containerImageFile,
  imageCommands,
  imageInCommands,
  isImageReference,
} from '../../../src/model/kinds/image-names.ts'
import { kindOf } from '../../../src/model/kinds/node.ts'
import { loggedReason } from '../os/programs/logged-reason.ts'
import { startProgram } from '../os/programs/start.ts'
import { findProgram } from '../os/system/find-program.ts'
import { type CommandContext, clientOf } from './client.ts'
import type { CommandInput } from './command.ts'
import type { imagePulling } from './command-flags.ts'
import { CommandError, exits, wrongArguments } from './exits.ts'
import { imagesOf, type Pushed, pushedOutcome, pushFiles } from './images.ts'
import type { LabSource } from './lab-file.ts'
import type { CommandOutcome } from './outcome.ts'

/** The kind whose nodes start from images of registries. */
const ofContainers = imageKinds.find((kind) => kindOf(kind).image?.isOfRegistry === true)

/**
 * `patchbay images pull NAME...`: has skopeo fetch images of containers from their registries to this machine, with the log-ins of its
 * user, and brings them to a service. CommandError 1 without skopeo, 3 for what cannot be fetched, 64 for a name that none has.
 */
export async function imagesPull({ args, flags, signal }: CommandInput<typeof imagePulling>): Promise<CommandOutcome> {
  const wrong = args.find((name) => !isImageReference(name))
  if (wrong !== undefined)
    throw wrongArguments(`${JSON.stringify(wrong)} is no name of an image`, 'such as frrouting/frr:v8.4.0')
  const skopeo = findProgram('skopeo')
  if (skopeo === undefined) throw new CommandError(exits.failed, 'skopeo is not installed: sudo apt-get install skopeo')
  const context = { client: await clientOf(flags), signal }
  return pushedOutcome(await pull(skopeo, args, context, flags))
}

/**
 * Brings the images of a lab that registries have and its service lacks, after it has said so. What cannot be fetched is CommandError 3,
 * or a line with `partial`. Without skopeo nothing is fetched: the refusal of the lab names the commands.
 */
export async function pullMissing(
  { desired, imported = [] }: Pick<LabSource, 'desired' | 'imported'>,
  context: CommandContext,
  flags: { readonly json: boolean; readonly partial: boolean },
): Promise<void> {
  // Nothing will start: its refusal names the images, too.
  if (!flags.partial && imported.some(({ cannotRun }) => cannotRun !== undefined)) return
  const names = new Map(
    desired.nodes.flatMap(({ kind, properties: { image } }) => {
      const name = kind === ofContainers && typeof image === 'string' ? image : ''
      return imageCommands(name) === undefined ? [] : [[containerImageFile(name), name] as const]
    }),
  )
  for (const { hint = '' } of imported) {
    const name = imageInCommands(hint)
    if (name !== undefined) names.set(containerImageFile(name), name)
  }
  if (names.size === 0) return
  const known = new Set((await imagesOf(context)).flatMap(({ kind, path }) => (kind === ofContainers ? [path] : [])))
  const missing = [...names].flatMap(([file, name]) => (known.has(file) ? [] : [name]))
  const skopeo = findProgram('skopeo')
  if (missing.length === 0 || skopeo === undefined) return
  process.stderr.write(`Images to fetch: ${missing.join(', ')}\n`)
  for (const name of missing) {
    try {
      const [pushed] = await pull(skopeo, [name], context, { insecure: false, force: false, json: flags.json })
      process.stderr.write(`${name}: fetched, as ${pushed?.image}\n`)
    } catch (error) {
      if (!flags.partial || !(error instanceof CommandError)) throw error
      for (const { message } of error.diagnostics) process.stderr.write(`${message}\n`)
    }
  }
}

/** Fetches images from their registries, and brings them to a service. */
async function pull(
  skopeo: string,
  names: readonly string[],
  context: CommandContext,
  flags: Omit<FetchOptions, 'signal'> & { readonly force: boolean },
): Promise<readonly Pushed[]> {
  const directory = await mkdtemp(join(tmpdir(), 'patchbay-pull-'))
  try {
    const files: string[] = []
    for (const name of names) {
      const file = join(directory, containerImageFile(name))
      await fetchImage(skopeo, name, file, { ...flags, signal: context.signal })
      files.push(file)
    }
    return await pushFiles(files, context, { ...flags, kind: ofContainers, name: undefined })
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

/** The variables by which skopeo finds proxies, certificates and the log-ins of its user (skopeo(1), containers-auth.json(5)). */
const ofRegistries = [
  ...[
    'HTTP_PROXY',
    'HTTPS_PROXY',
    'NO_PROXY',
    'http_proxy',
    'https_proxy',
    'no_proxy',
    'SSL_CERT_FILE',
    'SSL_CERT_DIR',
  ],
  ...['REGISTRY_AUTH_FILE', 'DOCKER_CONFIG', 'XDG_RUNTIME_DIR', 'XDG_CONFIG_HOME', 'CONTAINERS_REGISTRIES_CONF'],
]

interface FetchOptions {
  readonly insecure: boolean
  readonly json: boolean
  readonly signal: AbortSignal
}

/** How long a registry may take to say what an image is made of. */
const maxAnswer = '30s'

/** Fetches an image into an archive. Its progress goes to standard error, unless the output is for programs. */
async function fetchImage(skopeo: string, name: string, file: string, options: FetchOptions): Promise<void> {
  const { insecure, json, signal } = options
  const from = `docker://${name}`
  // A registry that does not answer is noticed at once; how long layers take, nobody knows.
  const asking = ['--command-timeout', maxAnswer, 'inspect', '--raw', ...(insecure ? ['--tls-verify=false'] : []), from]
  await runSkopeo(skopeo, asking, name, { signal, stdout: 'ignore' })
  const copying = [
    ...['copy', ...(json || !process.stderr.isTTY ? ['--quiet'] : [])],
    ...(insecure ? ['--src-tls-verify=false'] : []),
    ...[from, `docker-archive:${file}`],
  ]
  await runSkopeo(skopeo, copying, name, { signal, stdout: 2 })
}

/** Runs skopeo to its end. CommandError 3 with what it says of an image. */
async function runSkopeo(
  skopeo: string,
  args: readonly string[],
  name: string,
  { signal, stdout }: { readonly signal: AbortSignal; readonly stdout: 2 | 'ignore' },
): Promise<void> {
  const child = startProgram(skopeo, args, { variables: ofRegistries, stdio: ['ignore', stdout, 'pipe'] })
  let said = ''
  child.stderr?.on('data', (bytes: Buffer) => {
    said = (said + bytes.toString()).slice(-4096)
  })
  const end = () => void child.kill('SIGTERM')
  signal.addEventListener('abort', end, { once: true })
  const [code] = (await once(child, 'close')) as [number | null]
  signal.removeEventListener('abort', end)
  signal.throwIfAborted()
  if (code === 0) return
  const message = `${name}: ${loggedReason(said) || 'it cannot be fetched'}`
  const needsLogIn = /unauthorized|authentication required|denied/i.test(said)
  const hint = `the image is private, or not there: "skopeo login ${registryOf(name)}" logs in`
  throw new CommandError(exits.wrong, [{ message, ...(needsLogIn && { hint }) }])
}

/** The registry of an image: the first part of its name, if that is the name of a host. */
function registryOf(name: string): string {
  const [first = '', ...rest] = name.split('/')
  return rest.length > 0 && /[.:]|^localhost$/.test(first) ? first : 'docker.io'
}
