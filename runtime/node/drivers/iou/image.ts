import { constants } from 'node:fs'
import { access, mkdtemp, open, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { conflict } from '../../../../src/lib/errors/api-error.ts'
import { diskError } from '../../engine/storage/disk.ts'
import { FileProbes } from '../../engine/storage/file-probes.ts'
import { type ProgramEnd, runProgram } from '../../os/programs/start.ts'
import type { Confinement } from '../../os/sandbox/sandbox.ts'
import { findProgram } from '../../os/system/find-program.ts'
import { type ElfHeader, elfHeader, elfHeaderBytes } from './elf.ts'

/** The facts that an image shows in its help. */
export interface IouImageFacts {
  readonly path: string
  readonly bits: 32 | 64
  /** Default memory (MB) and NVRAM (KB); undefined when the help does not name them. */
  readonly defaultRam: number | undefined
  readonly defaultNvram: number | undefined
  /** Whether the image knows -l. */
  readonly hasKeepalives: boolean
}

/** Timeout and output limit of a run with -h. */
const askMs = 15_000
const maxOutputBytes = 1 << 20

const probes = new FileProbes<IouImageFacts>()

/** The facts of an image, asked once until the file changes. 409 when this host cannot run the image. */
export const imageFactsOf = (path: string, confinement?: Confinement): Promise<IouImageFacts> =>
  probes.get(path, () => ask(path, confinement))

/** The facts if they are known; for images that must not run yet. */
export const knownFactsOf = async (path: string): Promise<IouImageFacts | undefined> =>
  probes.known(path)?.catch(() => undefined)

async function ask(path: string, confinement: Confinement | undefined): Promise<IouImageFacts> {
  const { bits } = await requireIouImage(path)
  await requireLibraries(path, confinement)
  return { path, bits, ...factsIn(await helpOf(path, bits, confinement)) }
}

/** 409 unless the file is a program that this host can load. */
export async function requireIouImage(path: string): Promise<ElfHeader> {
  const name = basename(path)
  const found = await stat(path).catch(() => undefined)
  if (found === undefined) throw conflict(`The image ${name} does not exist`)
  if (!found.isFile()) throw conflict(`The image ${name} is not a file`)
  const header = elfHeader(await beginOf(path))
  if (header === undefined)
    throw conflict(`${name} is not an IOU image (expected a little-endian Linux ELF executable)`)
  await access(path, constants.X_OK).catch(() => {
    throw conflict(`The image ${name} is not executable: make it executable (chmod +x)`)
  })
  if (header.loader !== undefined && (await stat(header.loader).catch(() => undefined)) === undefined)
    throw noLoader(name, header)
  return header
}

const install32 =
  'apt-get install libc6-i386; with other libraries of 32 bits: dpkg --add-architecture i386; apt-get update; apt-get install libc6:i386'

const noLoader = (name: string, { bits, loader }: ElfHeader) =>
  conflict(
    `The image ${name} is a ${bits}-bit program, and its loader, ${loader}, is missing on this host` +
      (bits === 32 ? `; install it (${install32})` : ''),
  )

async function beginOf(path: string): Promise<Buffer> {
  try {
    await using file = await open(path, 'r')
    const { buffer, bytesRead } = await file.read(Buffer.alloc(elfHeaderBytes), 0, elfHeaderBytes, 0)
    return buffer.subarray(0, bytesRead)
  } catch (cause) {
    throw diskError(`Reading the image ${basename(path)}`, cause)
  }
}

/** 409 with the names of missing shared libraries; not checked on a host without ldd(1). */
async function requireLibraries(path: string, confinement?: Confinement): Promise<void> {
  const ldd = findProgram('ldd')
  if (ldd === undefined) return
  // ldd fails for a static program.
  const { error, stdout, stderr } = await run(ldd, [path], { image: path, confinement })
  const missing = error === null ? missingIn(`${stdout}\n${stderr}`) : []
  if (missing.length === 0) return
  throw conflict(`The image ${basename(path)} needs libraries that are missing on this host: ${missing.join(', ')}`)
}

/** Lines are like `libcrypto.so.4 => not found` and ``iou: libc.so.6: version `GLIBC_2.38' not found (required by iou)``. */
export const missingIn = (listing: string): string[] => [
  ...new Set(
    [...listing.matchAll(/^\s*(\S+) => not found|\bversion [`']([^\s']+)' not found/gm)].map(
      ([, library, version]) => library ?? version ?? '',
    ),
  ),
]

/** Options that all images know. The exit code of -h has no meaning. */
const isHelp = /^\s*-[esnm]\b/m

async function helpOf(path: string, bits: 32 | 64, confinement: Confinement | undefined): Promise<string> {
  // The working directory is temporary, because the image may create files.
  const directory = await mkdtemp(join(tmpdir(), 'patchbay-iou-'))
  try {
    const { error, stdout, stderr } = await run(path, ['-h'], { image: path, confinement, cwd: directory })
    const text = `${stdout}\n${stderr}`
    if (error === null || (typeof error.code === 'number' && isHelp.test(text))) return text
    const reason = error.killed ? `it did not answer -h within ${askMs} ms` : whyNot(error, bits)
    throw conflict(`The image ${basename(path)} cannot be run: ${reason}`, { cause: error })
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

function whyNot({ code, signal }: NonNullable<ProgramEnd['error']>, bits: 32 | 64): string {
  // This case includes files that the kernel cannot execute: execvp(3) runs them by a shell.
  if (typeof code === 'number') {
    const kernel = bits === 32 ? ' (some kernels, for example in PVM guests, cannot run 32-bit programs)' : ''
    return `it ended with code ${code} and printed no help${kernel}`
  }
  if (code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER') return `it printed more than ${maxOutputBytes} bytes`
  if (code === 'ENOENT') return 'its loader is missing on this host'
  return signal ? `it was ended by ${signal}` : 'this host cannot execute it'
}

type Question = { readonly image: string; readonly confinement: Confinement | undefined; readonly cwd?: string }

/** Runs a program, confined if the host can; `cwd` holds outside a cell only. */
function run(program: string, args: readonly string[], { image, confinement, cwd }: Question): Promise<ProgramEnd> {
  const cell = { cwd: '/tmp', network: 'none' as const, readable: [image] }
  const wrapped = confinement?.wrap(cell, program, args) ?? { command: program, args }
  return runProgram(wrapped.command, wrapped.args, {
    ms: askMs,
    maxBytes: maxOutputBytes,
    set: { LC_ALL: 'C' },
    ...(cwd !== undefined && { cwd }),
  })
}

/** Parses lines such as `-n <n>  Size of nvram in Kb (default 64KB)`; the text of an option ends at the next option. */
export function factsIn(help: string): Pick<IouImageFacts, 'defaultRam' | 'defaultNvram' | 'hasKeepalives'> {
  const options = new Map(help.split(/^\s*(?=-\w\b)/m).map((text) => [text.slice(0, 2), text]))
  const defaultOf = (option: string, unit: RegExp) => {
    const [, number] = unit.exec(options.get(option) ?? '') ?? []
    return number === undefined ? undefined : Number(number)
  }
  return {
    defaultRam: defaultOf('-m', /\(default\s+(\d{1,7})\s*MB\)/i),
    defaultNvram: defaultOf('-n', /\(default\s+(\d{1,7})\s*KB\)/i),
    hasKeepalives: options.has('-l'),
  }
}
