import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { mkdir, open, readdir, rename, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { type Static, Type } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import { KeyedMutex } from '../../../../src/lib/async/keyed-mutex.ts'
import { conflict } from '../../../../src/lib/errors/api-error.ts'
import type { ReadyCommand } from '../../engine/nodes/kind.ts'
import { requireSpace, withDiskErrors } from '../../engine/storage/disk.ts'
import { letIn, permissions } from '../../os/sandbox/user.ts'
import type { ImageRun } from './bundle.ts'
import type { Engine } from './engine.ts'
import type { Place } from './holder.ts'
import { makeOpen, manyFiles, removeInside, runInside } from './tools.ts'

/** Longest run of a command that says whether a container is ready, ms; that of health checks by default. */
export const readyMs = 30_000
/** How long an image stays unpacked that no node has, ms. */
const keptMs = 86_400_000
/** Limit of a description of an image; skopeo refuses larger ones. */
const maxDescription = 4 << 20

const Strings = Type.Array(Type.String({ maxLength: 1 << 17 }), { maxItems: 4096 })
const Id = Type.Integer({ minimum: 0, maximum: 65_535 })
/** What we take of the configuration that umoci makes of an image, which may be hostile. */
const RuntimeConfig = Type.Object({
  process: Type.Object({
    user: Type.Object({ uid: Id, gid: Id, additionalGids: Type.Optional(Type.Array(Id, { maxItems: 64 })) }),
    env: Type.Optional(Strings),
    cwd: Type.String({ pattern: '^/', maxLength: 4096 }),
  }),
})
const ImageConfig = Type.Object({
  config: Type.Optional(
    Type.Object({
      Entrypoint: Type.Optional(Type.Union([Strings, Type.Null()])),
      Cmd: Type.Optional(Type.Union([Strings, Type.Null()])),
      Healthcheck: Type.Optional(
        Type.Union([
          Type.Object({ Test: Type.Optional(Strings), Timeout: Type.Optional(Type.Number({ minimum: 0 })) }),
          Type.Null(),
        ]),
      ),
      StopSignal: Type.Optional(Type.String({ maxLength: 32 })),
    }),
  ),
  architecture: Type.Optional(Type.String()),
})

/** An image that nodes can run: its files are the lower layer of all of them. */
export interface UnpackedImage {
  /** The directory with the root file system. */
  readonly rootfs: string
  readonly run: ImageRun
  /** Name of the signal that ends its command. */
  readonly stopSignal: string
}

/** Unpacked images, by the MD5 of their files. They are unpacked as root of the namespaces of containers, without a network. */
export class ImageStore {
  readonly #directory: string
  readonly #minFreeMb: () => number
  readonly #maxFiles: number
  readonly #serial = new KeyedMutex()

  constructor(directory: string, minFreeMb: () => number, maxFiles = manyFiles) {
    this.#directory = directory
    this.#minFreeMb = minFreeMb
    this.#maxFiles = maxFiles
  }

  /** The image of a file, unpacked once. 409 when it is none, or has no files for this processor. */
  unpacked(engine: Engine, file: string, md5: string, signal: AbortSignal): Promise<UnpackedImage> {
    return this.#serial.run(md5, async () => {
      const place = join(this.#directory, md5)
      if ((await stat(place).catch(() => undefined)) === undefined) await this.#unpack(engine, file, place, signal)
      return read(place, basename(file))
    })
  }

  /** The command by which an image says whether what it runs is well (HEALTHCHECK); undefined: it has none, or is not unpacked. */
  async healthCheckOf(md5: string): Promise<ReadyCommand | undefined> {
    const image = await readDescription(join(this.#directory, md5, 'image.json')).catch(() => undefined)
    if (!Check(ImageConfig, image)) return undefined
    const { Test: [how, ...words] = [], Timeout = 0 } = image.config?.Healthcheck ?? {}
    const command = how === 'CMD-SHELL' ? ['/bin/sh', '-c', words[0] ?? ''] : how === 'CMD' ? words : []
    if (command.length === 0) return undefined
    // Nanoseconds; 0 stands for the default.
    return { words: command, ms: Timeout > 0 ? Math.min(Math.max(Timeout / 1e6, 1000), readyMs) : readyMs }
  }

  /** Removes images that were unpacked a day ago or before, and of which no node is made; a start unpacks its image again. */
  async tidy(engine: Pick<Engine, 'ids'>, used: ReadonlySet<string | null>, now = Date.now()): Promise<void> {
    for (const name of await readdir(this.#directory).catch(() => [])) {
      const place = join(this.#directory, name)
      const isUsed = () => stat(place).then(({ mtimeMs }) => used.has(name) || now - mtimeMs < keptMs)
      // Of parts of an image, the name has more than the sum.
      await this.#serial.run(name.split('.')[0] ?? '', async () => {
        if (!(await isUsed().catch(() => true))) await removeInside(engine.ids, place)
      })
    }
  }

  async #unpack(engine: Engine, file: string, place: string, signal: AbortSignal): Promise<void> {
    const partial = `${place}.${randomUUID().slice(0, 8)}`
    await withDiskErrors('Unpacking the image', async () => {
      await mkdir(this.#directory, { recursive: true, mode: 0o700 })
      await requireSpace(this.#directory, this.#minFreeMb())
      await makeOpen(partial)
    })
    const { firstUid: uid, firstGid: gid } = engine.ids
    await letIn(file, { name: 'containers', uid, gid }, permissions.read)
    try {
      await this.#runUnpack(engine, file, partial, signal)
      await rename(partial, place)
    } catch (error) {
      await removeInside(engine.ids, partial)
      throw error
    }
  }

  async #runUnpack(engine: Engine, file: string, partial: string, signal: AbortSignal): Promise<void> {
    const places: Place[] = [
      { name: 'from', path: file, isWritable: false },
      { name: 'to', path: partial, isWritable: true },
    ]
    await runInside({
      ...{ ids: engine.ids, places, signal, disk: partial },
      program: ['/bin/sh', '-c', unpackScript, engine.skopeo, engine.umoci],
      minFreeMb: this.#minFreeMb(),
      maxFiles: this.#maxFiles,
      failure: `${basename(file)} cannot be unpacked`,
    })
  }
}

/**
 * Copies an image to `oci`, by the names of skopeo (containers-transports(5)): an archive of `docker save`, or an OCI archive. The first
 * argument is skopeo.
 */
export const copyToLayout = `set -e; umask 022; cd /mnt/to; export HOME=/mnt/to TMPDIR=/mnt/to
copy() { kind=$1; "$0" --insecure-policy --tmpdir /mnt/to copy -q "$1:/mnt/from" oci:oci:image; }
why() { if grep -Eq 'manifest.json(: file does not exist| not found)' docker.txt; then cat oci.txt; else cat docker.txt; fi >&2; exit 1; }
copy docker-archive 2>docker.txt || { rm -rf oci; copy oci-archive 2>oci.txt; } || why`

/**
 * umoci follows links at the files of users to files of the host, and waits for a writer of a pipe there. OCI images have no health check: the
 * description is that of the archive.
 */
const unpackScript = `${copyToLayout}
"$1" raw unpack --image oci:image rootfs >&2
for file in /etc/passwd /etc/group; do
  test -e "rootfs$file" || continue
  case $(readlink -f "rootfs$file") in /mnt/to/rootfs/*) test ! -f "rootfs$file" || continue ;; esac
  echo "its $file is not a file of the image" >&2; exit 1
done
"$1" raw runtime-config --image oci:image --rootfs rootfs runtime.json >&2
case $kind in docker-archive) of=docker-archive:/mnt/from ;; *) of=oci:oci:image ;; esac
"$0" --insecure-policy --tmpdir /mnt/to inspect --raw --config "$of" >image.json; rm -rf oci docker.txt oci.txt`

async function read(place: string, name: string): Promise<UnpackedImage> {
  const [runtime, image] = await Promise.all(
    ['runtime.json', 'image.json'].map((file) => readDescription(join(place, file))),
  )
  if (!Check(RuntimeConfig, runtime) || !Check(ImageConfig, image))
    throw conflict(`${name} is an image whose configuration cannot be read`)
  const { user, env = [], cwd } = runtime.process
  const { Entrypoint, Cmd, StopSignal = 'SIGTERM' }: Static<typeof ImageConfig>['config'] & object = image.config ?? {}
  return {
    rootfs: join(place, 'rootfs'),
    stopSignal: StopSignal,
    run: {
      user: { uid: user.uid, gid: user.gid, additionalGids: user.additionalGids ?? [] },
      env: env.filter((it) => it.includes('=')),
      cwd,
      entrypoint: Entrypoint ?? [],
      args: Cmd ?? [],
    },
  }
}

/** What a file says that root of the namespaces wrote; undefined when it is not such a file. */
async function readDescription(path: string): Promise<unknown> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const { size } = await file.stat()
    return size > maxDescription ? undefined : JSON.parse(await file.readFile('utf8'))
  } catch {
    return undefined
  } finally {
    await file.close()
  }
}
