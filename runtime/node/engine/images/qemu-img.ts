import { lstatSync, statSync } from 'node:fs'
import { basename, dirname, isAbsolute, join } from 'node:path'
import { conflict, outOfSpace } from '../../../../src/lib/errors/api-error.ts'
import { runProgram } from '../../os/programs/start.ts'
import { findProgram } from '../../os/system/find-program.ts'
import type { ImageTool } from './confined-tool.ts'

/** Timeout of a command that only reads headers, ms. */
const headerMs = 30_000
/** Timeout of a command that reads or writes all metadata of an image, as a check does, ms. */
const metadataMs = 600_000
/**
 * Limit of the memory of a command, KiB. A check needs 2 bytes for each cluster: 32 MB for an image with 1 TB of data. Without a limit
 * a hostile image, such as one with ever more backing files, takes all memory of the host.
 */
export const toolMemoryKb = 1 << 20
const maxOutputBytes = 4 << 20
/** Limit of what a message repeats of the tool: it has a line for each backing file, characters. */
const maxWords = 1000

/** The facts of a disk image. */
export interface DiskFacts {
  readonly format: string
  readonly virtualSize: number
  /** Absolute path of the backing file; undefined for an image without one. */
  readonly backing: string | undefined
  readonly backingFormat: string | undefined
  /** All other files that hold its data: backing file, external data file, extents. */
  readonly references: readonly string[]
  readonly isCorrupt: boolean
  readonly snapshots: readonly string[]
}

/** `qemu-img` beside the emulator, if there is one, which has the same version, else that in PATH; 409 without any. */
export function findImageTool(emulator?: string): string {
  const beside = emulator && findProgram(join(dirname(emulator), 'qemu-img'))
  const tool = beside || findProgram('qemu-img')
  if (tool === undefined) throw conflict('qemu-img is not installed; install it (apt-get install qemu-utils)')
  return tool
}

/** The exit code and the output of `qemu-img`. */
export interface ToolEnd {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs `qemu-img`. The caller judges the exit code; 409 when the program did not exit by itself. */
export async function runQemuImg(tool: ImageTool, args: readonly string[], ms = metadataMs): Promise<ToolEnd> {
  const options = { ms, maxBytes: maxOutputBytes, memoryKb: toolMemoryKb, set: { LC_ALL: 'C' } }
  const end = typeof tool === 'string' ? runProgram(tool, args, options) : tool.run(args, options)
  const { error, stdout, stderr } = await end
  const code = error === null ? 0 : error.code
  if (typeof code === 'number') return { code, stdout, stderr }
  if (code === 'ABORT_ERR') throw conflict(toolStopped, { cause: error })
  const reason = error?.killed ? `it took longer than ${ms} ms` : (error?.message ?? 'it was killed')
  throw conflict(`qemu-img ${args[0]} failed: ${reason}`, { cause: error })
}

/** The message of a command that the stop of its node ended. */
const toolStopped = 'The node was stopped while its disks were prepared'

/** Whether a command was ended by the stop of its node, and says nothing about its image. */
export const isToolStopped = (error: unknown): boolean => error instanceof Error && error.message === toolStopped

/** The error for a failed command; `what` names the operation and the image. */
export function qemuImgError(what: string, { stderr, code }: ToolEnd): Error {
  if (/No space left on device|Disk quota exceeded/.test(stderr)) {
    return outOfSpace(`${what}: the disk is full; free some space first`)
  }
  if (/Failed to get .*lock|Is another process using the image/.test(stderr)) {
    return conflict(`${what}: the image is in use by a running machine or tool; stop that first`)
  }
  const words = stderr
    .split('\n')
    .map((line) => line.replace(/^qemu-img: /, '').trim())
    .filter((line) => line !== '')
    .join('; ')
    .slice(0, maxWords)
  return conflict(`${what}: ${words === '' ? `qemu-img ended with code ${code}` : words}`)
}

/** Runs `qemu-img`; throws when it fails. */
export async function mustRun(what: string, tool: ImageTool, args: readonly string[], ms?: number): Promise<string> {
  const end = await runQemuImg(tool, args, ms)
  if (end.code !== 0) throw qemuImgError(what, end)
  return end.stdout
}

/** 409 unless the image is a file; a dangling link has its own message. */
export function requireImage(path: string): void {
  const name = basename(path)
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats?.isFile() || stats?.isBlockDevice()) return
  if (stats !== undefined) throw conflict(`The image ${name} is not a file`)
  const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true
  throw conflict(isLink ? `The image ${name} is a dangling link` : `The image ${name} does not exist`)
}

/** An image in the output of `qemu-img info` and in QMP (`ImageInfo` of QEMU's block-core.json). */
export interface ToolInfo {
  readonly filename: string
  readonly format: string
  readonly 'virtual-size': number
  readonly 'backing-filename'?: string
  readonly 'full-backing-filename'?: string
  readonly 'backing-filename-format'?: string
  readonly snapshots?: readonly { readonly name: string }[]
  readonly 'format-specific'?: {
    readonly data?: {
      readonly corrupt?: boolean
      readonly 'data-file'?: string
      readonly extents?: readonly { readonly filename?: string }[]
    }
  }
}

/** What the tool printed; undefined when it is not what `--output=json` prints (a hostile image may have taken the tool over). */
function infoIn(text: string): ToolInfo | undefined {
  try {
    const info = JSON.parse(text) as ToolInfo | null
    return typeof info?.format === 'string' && typeof info['virtual-size'] === 'number' ? info : undefined
  } catch {
    return undefined
  }
}

/**
 * Reads the header of an image, also while a machine uses it. Without `format` the content decides the format, which is safe only
 * before a guest has written to the image.
 */
export async function inspectImage(tool: ImageTool, path: string, format?: string): Promise<DiskFacts> {
  // Other names, such as those of NBD, are those of backing files.
  if (isAbsolute(path)) requireImage(path)
  const args = ['info', '-U', '--output=json', ...(format === undefined ? [] : ['-f', format]), path]
  const what = `Reading ${basename(path)}`
  const facts = factsIn(await mustRun(what, tool, args, headerMs), path)
  if (facts === undefined) throw conflict(`${what} failed: the output of the tool does not describe an image`)
  return facts
}

/** The facts in the output of `qemu-img info` about an image; undefined for other output. */
export function factsIn(text: string, path: string): DiskFacts | undefined {
  const info = infoIn(text)
  if (info === undefined) return undefined
  return {
    format: info.format,
    virtualSize: info['virtual-size'],
    backing: backingIn(info),
    backingFormat: info['backing-filename-format'],
    references: referencesIn(info).filter((part) => part !== path),
    isCorrupt: info['format-specific']?.data?.corrupt ?? false,
    snapshots: (info.snapshots ?? []).map(({ name }) => name),
  }
}

/** The files that an image refers to. */
export function referencesIn(info: ToolInfo): string[] {
  const data = info['format-specific']?.data
  const parts = [backingIn(info), data?.['data-file'], ...(data?.extents ?? []).map(({ filename }) => filename)]
  return parts.filter((part) => part !== undefined)
}

const backingIn = (info: ToolInfo): string | undefined => info['full-backing-filename'] ?? info['backing-filename']
