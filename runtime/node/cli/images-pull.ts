import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { imageKinds } from '../../../src/model/image.ts'
import { containerImageFile, isImageReference } from '../../../src/model/kinds/image-names.ts'
import { kindOf } from '../../../src/model/kinds/node.ts'
import { loggedReason } from '../os/programs/logged-reason.ts'
import { startProgram } from '../os/programs/start.ts'
import { findProgram } from '../os/system/find-program.ts'
import { clientOf } from './client.ts'
import type { CommandInput } from './command.ts'
import type { imagePulling } from './command-flags.ts'
import { CommandError, exits, wrongArguments } from './exits.ts'
import { pushedOutcome, pushFiles } from './images.ts'
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
  const directory = await mkdtemp(join(tmpdir(), 'patchbay-pull-'))
  try {
    const files: string[] = []
    for (const name of args) {
      const file = join(directory, containerImageFile(name))
      await fetchImage(skopeo, name, file, { ...flags, signal })
      files.push(file)
    }
    return pushedOutcome(await pushFiles(files, context, { ...flags, kind: ofContainers, name: undefined }))
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

/** Fetches an image into an archive. Its progress goes to standard error, unless the output is for programs. */
async function fetchImage(skopeo: string, name: string, file: string, options: FetchOptions): Promise<void> {
  const { insecure, json, signal } = options
  const args = [
    ...['copy', ...(json || !process.stderr.isTTY ? ['--quiet'] : [])],
    ...(insecure ? ['--src-tls-verify=false'] : []),
    ...[`docker://${name}`, `docker-archive:${file}`],
  ]
  const child = startProgram(skopeo, args, { variables: ofRegistries, stdio: ['ignore', 2, 'pipe'] })
  let said = ''
  child.stderr?.on('data', (bytes: Buffer) => {
    said = (said + bytes.toString()).slice(-4096)
  })
  const end = () => void child.kill('SIGTERM')
  signal.addEventListener('abort', end, { once: true })
  const [code] = (await once(child, 'close')) as [number | null]
  signal.removeEventListener('abort', end)
  signal.throwIfAborted()
  if (code !== 0) throw new CommandError(exits.wrong, `${name}: ${loggedReason(said) || 'it cannot be fetched'}`)
}
