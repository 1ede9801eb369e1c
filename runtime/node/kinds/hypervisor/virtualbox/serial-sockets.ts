import { createHash } from 'node:crypto'
import { lstat, mkdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { conflict } from '../../../../../src/errors/api-error.ts'
import { withDiskErrors } from '../../../storage/disk.ts'
import { longestSocketPath } from '../../../system/socket-path.ts'

const lookMs = 50

/**
 * Where the serial ports of running machines are: UNIX sockets in a directory that only we may enter. As a TCP port VirtualBox
 * would serve them to the whole network. It takes one client at a time, and cuts a path that is too long.
 */
export class SerialSockets {
  readonly #directory: string

  /** Below `wanted`, or, where that is too deep for the path of a socket, in the directory for temporary files. */
  constructor(wanted: string) {
    const short = join(tmpdir(), `patchbay-${hash(wanted)}`)
    this.#directory = fits(wanted) ? wanted : short
  }

  path(uuid: string): string {
    return join(this.#directory, nameOf(uuid))
  }

  /** Makes room for the socket of a machine that is about to start; 409 when others may enter there. */
  async prepare(uuid: string): Promise<void> {
    if (!fits(this.#directory)) throw conflict(`${this.#directory} is too deep for the path of a socket`)
    const { mode, uid } = await withDiskErrors('The directory of serial ports', async () => {
      await mkdir(this.#directory, { recursive: true, mode: 0o700 })
      return await lstat(this.#directory)
    })
    const isOurs = uid === process.getuid?.() && (mode & 0o170_077) === 0o040_000
    if (!isOurs) throw conflict(`${this.#directory} is not a directory that only this user may enter`)
    await this.remove(uuid)
  }

  /** Resolves when VirtualBox has made the socket; 409 when it does not within `ms`. */
  async appears(uuid: string, ms: number): Promise<void> {
    const end = performance.now() + ms
    while (!(await isSocket(this.path(uuid)))) {
      if (performance.now() > end) throw conflict(`The serial port of the VM did not appear within ${ms} ms`)
      await pause(lookMs)
    }
  }

  async remove(uuid: string): Promise<void> {
    await withDiskErrors('The serial port of a VM', () => rm(this.path(uuid), { force: true }))
  }
}

const hash = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 16)

const nameOf = (uuid: string) => `tty-${hash(uuid)}`

const fits = (directory: string) => Buffer.byteLength(join(directory, nameOf(''))) <= longestSocketPath

const isSocket = async (path: string) => (await lstat(path).catch(() => undefined))?.isSocket() === true
