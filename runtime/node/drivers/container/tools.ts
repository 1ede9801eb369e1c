import { chmod, mkdir, readdir, rm, statfs } from 'node:fs/promises'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { conflict, outOfSpace } from '../../../../src/lib/errors/api-error.ts'
import { loggedReason } from '../../os/programs/logged-reason.ts'
import { type RunOptions, runProgram } from '../../os/programs/start.ts'
import { insideCommand, type Place } from './holder.ts'
import type { IdRange } from './ids.ts'

/** Timeout of a program that reads or writes an image or a layer, and interval of the checks of the disk meanwhile, ms. */
const toolMs = 1_800_000
const checkMs = 200
/** Limit of the files of an image or a layer; more may be all that the disk can have. */
export const manyFiles = 1_000_000

/** A program in the namespaces of containers, which reads what strangers made. */
interface InsideTool extends Pick<RunOptions, 'signal' | 'input' | 'output'> {
  readonly ids: IdRange
  readonly places: readonly Place[]
  readonly program: readonly string[]
  /** Where it writes, or its output goes: it is ended when that disk is nearly full. */
  readonly disk: string
  readonly minFreeMb: number
  readonly maxFiles?: number
  /** What has failed when it fails: the beginning of a sentence. */
  readonly failure: string
}

/** Runs a program to its end. 409 with what it said last when it fails, 507 when the disk is nearly full. */
export async function runInside(tool: InsideTool): Promise<void> {
  const { ids, places, program, disk, minFreeMb, maxFiles = manyFiles, failure, signal, ...streams } = tool
  const over = new AbortController()
  const before = await statfs(disk)
  const watch = setInterval(() => {
    statfs(disk).then(({ bavail, bsize, ffree }) => {
      if ((bavail * bsize) / 2 ** 20 < minFreeMb) over.abort(outOfSpace(`${failure}: the disk is nearly full`))
      if (before.ffree - ffree > maxFiles) over.abort(conflict(`${failure}: it has more than ${maxFiles} files`))
    }, ignore('the program fails by itself'))
  }, checkMs)
  try {
    const { command, args } = insideCommand(ids, places, program)
    const until = signal === undefined ? over.signal : AbortSignal.any([signal, over.signal])
    const { error, stderr } = await runProgram(command, args, { ms: toolMs, signal: until, ...streams })
    over.signal.throwIfAborted()
    if (error !== null) throw conflict(`${failure}: ${loggedReason(stderr) || error.message}`)
  } finally {
    clearInterval(watch)
  }
}

/** Makes a directory in which root of the namespaces may write; only the service and it reach the one above. */
export async function makeOpen(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true })
  await chmod(directory, 0o777)
}

/** Removes a directory with files of root of the namespaces, by it. */
export async function removeInside(ids: IdRange, directory: string): Promise<void> {
  const names = await readdir(directory).catch(() => undefined)
  if (names === undefined) return
  const places: Place[] = [{ name: 'it', path: directory, isWritable: true }]
  const { command, args } = insideCommand(ids, places, ['/bin/sh', '-c', 'rm -rf /mnt/it/* /mnt/it/.[!.]*'])
  if (names.length > 0) await runProgram(command, args, { ms: toolMs })
  await rm(directory, { recursive: true, force: true })
}
