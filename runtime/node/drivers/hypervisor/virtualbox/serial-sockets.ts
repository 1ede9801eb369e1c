import { createHash } from 'node:crypto'
import { lstat, mkdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { conflict } from '../../../../../src/lib/errors/api-error.ts'
import { withDiskErrors } from '../../../engine/storage/disk.ts'
import { longestSocketPath } from '../../../os/system/socket-path.ts'

const pollMs = 50

/**
 * The serial ports of running VMs: UNIX sockets in a directory of mode 0700. On a TCP port VirtualBox would serve all networks.
 * Each socket takes one client. VirtualBox truncates long paths.
 */
export class SerialSockets {
  readonly #directory: string

  /** In `directory`, or in the directory for temporary files when that path is too long for a socket. */
  constructor(directory: string) {
    this.#directory = fits(directory) ? directory : join(tmpdir(), `patchbay-${hash(directory)}`)
  }

  path(uuid: string): string {
    return join(this.#directory, nameOf(uuid))
  }

  /** Prepares the directory for a start; 409 when other users may enter it. */
  async prepare(uuid: string): Promise<void> {
    if (!fits(this.#directory)) throw conflict(`${this.#directory} is too long for the path of a socket`)
    const { mode, uid } = await withDiskErrors('The directory of serial ports', async () => {
      await mkdir(this.#directory, { recursive: true, mode: 0o700 })
      return await lstat(this.#directory)
    })
    const isOurs = uid === process.getuid?.() && (mode & 0o170_077) === 0o040_000
    if (!isOurs) throw conflict(`${this.#directory} is not a directory that only this user may enter`)
    await this.remove(uuid)
  }

  /** Waits until VirtualBox has created the socket; 409 after `ms`. */
  async waitFor(uuid: string, ms: number): Promise<void> {
    const end = performance.now() + ms
    while (!(await isSocket(this.path(uuid)))) {
      if (performance.now() > end) throw conflict(`The serial port of the VM did not appear within ${ms} ms`)
      await pause(pollMs)
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
