import { lstatSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { conflict, outOfSpace } from '../../../../src/errors/api-error.ts'
import { runProgram } from '../../programs/start.ts'
import { findProgram } from '../../system/find-program.ts'
import type { ImageTool } from './confined-tool.ts'

/** What is asked of the disk of a tool that only reads headers, ms. What works through an image has no bound. */
const headerMs = 30_000
const maxOutputBytes = 4 << 20

/** What a disk image is. */
export interface DiskFacts {
  readonly format: string
  readonly virtualSize: number
  /** The image below it, as an absolute path; undefined when it stands by itself. */
  readonly backing: string | undefined
  readonly backingFormat: string | undefined
  /** Every other file that reading it reads: images below it, external data, extents. */
  readonly references: readonly string[]
  readonly isCorrupt: boolean
  readonly snapshots: readonly string[]
}

/** The tool beside the emulator, which fits its version, else that in PATH; 409 when there is none. */
export function findImageTool(emulator: string): string {
  const tool = findProgram(join(dirname(emulator), 'qemu-img')) ?? findProgram('qemu-img')
  if (tool === undefined) throw conflict('qemu-img is not installed; install it (apt-get install qemu-utils)')
  return tool
}

/** How the tool ended, and what it said. */
export interface ToolEnd {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs the tool without a shell. Its exit code is the caller's to judge; 409 when it could not run to its end. */
export async function runQemuImg(tool: ImageTool, args: readonly string[], ms = 0): Promise<ToolEnd> {
  const options = { ms, maxBytes: maxOutputBytes, set: { LC_ALL: 'C' } }
  const end = typeof tool === 'string' ? runProgram(tool, args, options) : tool.run(args, options)
  const { error, stdout, stderr } = await end
  const code = error === null ? 0 : error.code
  if (typeof code === 'number') return { code, stdout, stderr }
  const reason = error?.killed ? `it took longer than ${ms} ms` : (error?.message ?? 'it was killed')
  throw conflict(`qemu-img ${args[0]} did not end well: ${reason}`, { cause: error })
}

/** The refusal that the tool's complaint means; `what` is what was to be done, with the name of the image. */
export function qemuImgError(what: string, { stderr, code }: ToolEnd): Error {
  if (/No space left on device|Disk quota exceeded/.test(stderr)) {
    return outOfSpace(`${what}: the disk is full; delete something first`)
  }
  if (/Failed to get .*lock|Is another process using the image/.test(stderr)) {
    return conflict(`${what}: the image is in use by a running machine or tool; stop that first`)
  }
  const words = stderr
    .split('\n')
    .map((line) => line.replace(/^qemu-img: /, '').trim())
    .filter((line) => line !== '')
    .join('; ')
  return conflict(`${what}: ${words === '' ? `qemu-img ended with code ${code}` : words}`)
}

/** Runs the tool and wants it to succeed. */
export async function mustRun(what: string, tool: ImageTool, args: readonly string[], ms = 0): Promise<string> {
  const end = await runQemuImg(tool, args, ms)
  if (end.code !== 0) throw qemuImgError(what, end)
  return end.stdout
}

/** 409 that tells a missing image from one whose link leads nowhere. */
export function requireImage(path: string): void {
  const name = basename(path)
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats?.isFile() || stats?.isBlockDevice()) return
  if (stats !== undefined) throw conflict(`The image ${name} is not a file`)
  const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true
  throw conflict(isLink ? `The image ${name} is a link that leads nowhere` : `The image ${name} is not there`)
}

/** What the tool, and a monitor, say of an image. */
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

/**
 * Reads the header of an image. A running machine does not hinder that. Without a format it is recognised by its content,
 * which is safe only as long as no guest has written to the image.
 */
export async function inspectImage(tool: ImageTool, path: string, format?: string): Promise<DiskFacts> {
  requireImage(path)
  const args = ['info', '-U', '--output=json', ...(format === undefined ? [] : ['-f', format]), path]
  const info = JSON.parse(await mustRun(`Reading ${basename(path)}`, tool, args, headerMs)) as ToolInfo
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

/** The files that an image names. */
export function referencesIn(info: ToolInfo): string[] {
  const data = info['format-specific']?.data
  const parts = [backingIn(info), data?.['data-file'], ...(data?.extents ?? []).map(({ filename }) => filename)]
  return parts.filter((part) => part !== undefined)
}

const backingIn = (info: ToolInfo): string | undefined => info['full-backing-filename'] ?? info['backing-filename']
