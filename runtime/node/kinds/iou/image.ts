import { constants, statSync } from 'node:fs'
import { access, mkdtemp, open, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { conflict } from '../../../../src/errors/api-error.ts'
import { type ProgramEnd, runProgram } from '../../programs/start.ts'
import type { Confinement } from '../../sandbox/sandbox.ts'
import { diskError } from '../../storage/disk.ts'
import { findProgram } from '../../system/find-program.ts'
import { type ElfHeader, elfHeader, elfHeaderBytes } from './elf.ts'

/** What an image says of itself. */
export interface IouImageFacts {
  readonly path: string
  readonly bits: 32 | 64
  /** What it has when it is not told otherwise: MB and KB; undefined when it does not say. */
  readonly defaultRam: number | undefined
  readonly defaultNvram: number | undefined
  /** Whether it knows -l. */
  readonly hasKeepalives: boolean
}

/** Bounds of one question; a loaded host may take seconds for what takes a tenth of one. */
const askMs = 15_000
const maxOutputBytes = 1 << 20

/** The last answer of every image, and of which state of the file it is. */
const known = new Map<string, { readonly stamp: string; readonly facts: Promise<IouImageFacts> }>()

/**
 * What the image at that path is, and can do; asked once for every file, and again when the file has changed. 409 when this host
 * cannot run it.
 */
export function imageFactsOf(path: string, confinement?: Confinement): Promise<IouImageFacts> {
  const stamp = stampOf(path)
  if (stamp === undefined) return Promise.reject(conflict(`The image ${basename(path)} is not there`))
  const before = known.get(path)
  if (before?.stamp === stamp) return before.facts
  const facts = ask(path, confinement)
  const entry = { stamp, facts }
  known.set(path, entry)
  // The next one asks again: the host may just have been too busy, or gets what was missing.
  facts.catch(() => {
    if (known.get(path) === entry) known.delete(path)
  })
  return facts
}

/** The same where the image must not be run: only what it said before; undefined when that is not known. */
export async function knownFactsOf(path: string): Promise<IouImageFacts | undefined> {
  const entry = known.get(path)
  return entry === undefined || entry.stamp !== stampOf(path) ? undefined : entry.facts.catch(() => undefined)
}

function stampOf(path: string): string | undefined {
  try {
    const { ino, size, mtimeMs } = statSync(path)
    return `${ino}:${size}:${mtimeMs}`
  } catch {
    return undefined
  }
}

async function ask(path: string, confinement: Confinement | undefined): Promise<IouImageFacts> {
  const { bits } = await requireIouImage(path)
  await requireLibraries(path, confinement)
  return { path, bits, ...factsIn(await helpOf(path, confinement)) }
}

/** 409 unless the file is a program that this host can load. */
export async function requireIouImage(path: string): Promise<ElfHeader> {
  const name = basename(path)
  const found = await stat(path).catch(() => undefined)
  if (found === undefined) throw conflict(`The image ${name} is not there`)
  if (!found.isFile()) throw conflict(`The image ${name} is not a file`)
  const header = elfHeader(await beginOf(path))
  if (header === undefined) {
    throw conflict(`The image ${name} is no IOU image: expected a program for Linux (ELF, little-endian)`)
  }
  await access(path, constants.X_OK).catch(() => {
    throw conflict(`The image ${name} may not be executed: give it the permission (chmod +x)`)
  })
  if (header.loader !== undefined && (await stat(header.loader).catch(() => undefined)) === undefined) {
    throw noLoader(name, header)
  }
  return header
}

const install32 =
  'apt-get install libc6-i386; with other libraries of 32 bits: dpkg --add-architecture i386; apt-get update; apt-get install libc6:i386'

const noLoader = (name: string, { bits, loader }: ElfHeader) =>
  conflict(
    `The image ${name} is a program of ${bits} bits, and its loader, ${loader}, is missing on this host` +
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

/** 409 naming the shared libraries that the image needs and this host has not. A host without `ldd` cannot be asked. */
export async function requireLibraries(path: string, confinement?: Confinement): Promise<void> {
  const ldd = findProgram('ldd')
  if (ldd === undefined) return
  // It ends with an error for what is linked statically.
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

/** What all of them know. The exit code says nothing. */
const isHelp = /^\s*-[esnm]\b/m

async function helpOf(path: string, confinement: Confinement | undefined): Promise<string> {
  // It must not leave anything among the images.
  const directory = await mkdtemp(join(tmpdir(), 'patchbay-iou-'))
  try {
    const { error, stdout, stderr } = await run(path, ['-h'], { image: path, confinement, cwd: directory })
    const text = `${stdout}\n${stderr}`
    if (error === null || (typeof error.code === 'number' && isHelp.test(text))) return text
    const reason = error.killed ? `it did not answer -h within ${askMs} ms` : whyNot(error)
    throw conflict(`The image ${basename(path)} cannot be run: ${reason}`, { cause: error })
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

function whyNot({ code, signal }: NonNullable<ProgramEnd['error']>): string {
  // A file that the kernel cannot execute gets here too: execvp(3) has a shell try it.
  if (typeof code === 'number') return `it ended with code ${code} and did not say what it knows`
  if (code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER') return 'it does not stop talking'
  if (code === 'ENOENT') return 'its loader is missing on this host'
  return signal ? `it was ended by ${signal}` : 'this host cannot execute it'
}

interface Question {
  readonly image: string
  readonly confinement: Confinement | undefined
  readonly cwd?: string
}

/** Outside of a cell the program runs in the directory; in one its working directory is of the cell. */
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

/** From lines such as `-n <n>  Size of nvram in Kb (default 64KB)`; an option goes on until the next one. */
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
