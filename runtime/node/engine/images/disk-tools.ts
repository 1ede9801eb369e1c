import { realpathSync } from 'node:fs'
import { realpath } from 'node:fs/promises'
import { delimiter, isAbsolute, join } from 'node:path'
import { conflict } from '../../../../src/lib/errors/api-error.ts'
import { quotedPath } from '../../../../src/lib/text/escape.ts'
import type { FoundProgram } from '../../../../src/model/schema/program.ts'
import { runProgram } from '../../os/programs/start.ts'
import { findProgram } from '../../os/system/find-program.ts'
import { FileProbes } from '../storage/file-probes.ts'
import { toolMemoryKb } from './qemu-img.ts'

const name = 'qemu-img'
const probeMs = 5000
const maxOutput = 4 * 2 ** 20
const maxMs = 24 * 3_600_000

/** The disk-image tools of this host. Only tools in this list run, whatever a client names. */
export class DiskTools {
  readonly #path: () => string
  readonly #versions = new FileProbes<string>()

  constructor(path: () => string = () => process.env.PATH ?? '') {
    this.#path = path
  }

  /** Every tool in PATH that prints a version; a tool with several paths appears once. */
  async list(): Promise<FoundProgram[]> {
    const directories = this.#path().split(delimiter).filter(isAbsolute)
    const files = directories.map((directory) => findProgram(join(directory, name)))
    const distinct = new Map<string, string>()
    for (const file of files) {
      const real = file === undefined ? undefined : realpathSync(file)
      if (file !== undefined && real !== undefined && !distinct.has(real)) distinct.set(real, file)
    }
    const found = [...distinct.values()].map(async (path) => ({ path, version: await this.#version(path) }))
    return (await Promise.all(found)).filter(({ version }) => version !== '')
  }

  /** The tool with the path or name from the client; default: the first tool. 409 for a tool that is not in the list. */
  async choose(wanted: string | null | undefined): Promise<string> {
    const found = (await this.list()).map(({ path }) => path)
    const [first] = found
    if (first === undefined)
      throw conflict(`qemu_img: ${name} was not found; install it (sudo apt-get install qemu-utils)`)
    if (wanted === null || wanted === undefined || wanted === name) return first
    const real = isAbsolute(wanted) ? await realpath(wanted).catch(() => undefined) : undefined
    const chosen = found.find((path) => realpathSync(path) === real)
    if (chosen !== undefined) return chosen
    throw conflict(`qemu_img: ${quotedPath(wanted)} is not one of the programs found: ${found.join(', ')}`)
  }

  #version(path: string): Promise<string> {
    return this.#versions.get(path, async () => {
      const output = await runDiskTool(path, ['--version'], { timeoutMs: probeMs }).catch(() => '')
      return /version (\S+)/.exec(output)?.[1] ?? ''
    })
  }
}

export interface DiskToolOptions {
  readonly signal?: AbortSignal
  /** Default: a day, as writing a large disk takes hours. */
  readonly timeoutMs?: number
  /** A directory to remove from the error messages of the tool. */
  readonly hidden?: string
  /** Puts the tool into a cell. */
  readonly wrap?: Wrap | undefined
}

export type Wrap = (command: string, args: readonly string[]) => { command: string; args: string[] }

/** Runs a tool without a shell; its output, or a 409 with its error message. */
export async function runDiskTool(
  path: string,
  args: readonly string[],
  options: DiskToolOptions = {},
): Promise<string> {
  const { signal, timeoutMs = maxMs, hidden, wrap } = options
  const run = wrap?.(path, args) ?? { command: path, args }
  const { error, stdout, stderr } = await runProgram(run.command, run.args, {
    ms: timeoutMs,
    maxBytes: maxOutput,
    memoryKb: toolMemoryKb,
    set: { LC_ALL: 'C' },
    ...(signal !== undefined && { signal }),
  })
  if (error === null) return stdout
  throw conflict(complaint(stderr, hidden) || `${name} failed`, { cause: error })
}

/** The last line of the error output, without the parts that do not concern the request. */
function complaint(stderr: string, hidden: string | undefined): string {
  const text = hidden === undefined ? stderr : stderr.replaceAll(`${hidden}/`, '')
  return text.trim().split('\n').slice(-2).join(' ').slice(0, 400)
}
