import { readdirSync, statSync } from 'node:fs'
import { open, realpath } from 'node:fs/promises'
import { dirname, resolve, sep } from 'node:path'
import { Check } from '@sinclair/typebox/value'
import type { ImportedNode } from '../../../src/importers/draft.ts'
import type { Desired } from '../../../src/labfile/desired.ts'
import { inOrder, moreDiagnostics } from '../../../src/labfile/diagnostics.ts'
import { LabFileError } from '../../../src/labfile/lab-file-error.ts'
import type { LabFileDiagnostic } from '../../../src/labfile/position.ts'
import { type LabFileOptions, namedFiles, readLabFile, valuesOf } from '../../../src/labfile/read.ts'
import { LabName } from '../../../src/labfile/schema.ts'
import { reasonOf } from '../os/system/error-reason.ts'
import type { FlagValues } from './command.ts'
import type { labFileFlags } from './command-flags.ts'
import { CommandError, exits, wrongArguments } from './exits.ts'
import type { CommandDiagnostic } from './json-outputs.ts'

const maxBytes = 1 << 20
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const notText = 'it is not UTF-8 text'

/** A lab file with the files that it names, as it was read. */
export interface LabSource {
  /** As messages name it. */
  readonly name: string
  readonly document: string
  readonly files: Readonly<Record<string, string>>
  readonly vars: Readonly<Record<string, string>>
  readonly desired: Desired
  /** The nodes of a lab of another program, by their places in the file. Absent: it is a lab file. */
  readonly imported?: readonly ImportedNode[]
}

/**
 * Reads and checks a lab file and the files that it names. A lab of another program is imported, and standard error says how; not
 * with `isToBeSaved`, as the changes of a lab cannot be written into such a file. CommandError 3 with all that is wrong.
 */
export async function readLab(
  word: string | undefined,
  flags: FlagValues<typeof labFileFlags>,
  { isToBeSaved = false } = {},
): Promise<LabSource> {
  const vars = variablesOf(flags.var)
  const path = word ?? onlyLabFile()
  const text = await readText(path)
  const name = path === '-' ? 'stdin' : path
  if (flags.name !== undefined && !Check(LabName, flags.name))
    throw wrongArguments(`--name: expected ${LabName.expects}, got ${JSON.stringify(flags.name)}`)
  const base = path === '-' ? process.cwd() : dirname(resolve(path))
  const given = flags.name === undefined ? {} : { name: flags.name }
  const foreign = isForeign(text) ? await imported(name, text, { base, isToBeSaved }) : undefined
  const options = { vars, ...given }
  const checking = { name, base, allowOutside: flags['allow-outside'], options }
  if (foreign === undefined) return { vars, ...(await checkedLab(text, checking)) }
  const checked = await checkedLab(foreign.document, checking).catch(withoutPlaces)
  return { vars, ...checked, imported: foreign.nodes }
}

/** For `catch`: the lines of a lab file that was made of another file mean nothing to the user. */
export function withoutPlaces(error: unknown): never {
  if (!(error instanceof CommandError)) throw error
  const diagnostics = error.diagnostics.map(({ line: _, column: __, ...diagnostic }) => diagnostic)
  throw new CommandError(error.exit, diagnostics, { cause: error })
}

/** Whether a text is a lab of containerlab, GNS3 or CML: they have "topology", or a map at "lab" where a lab file has its name. */
const isForeign = (text: string): boolean =>
  hasTopology(text) ||
  (!/^(?:["']?lab["']?|[ \t{]*"lab")[ \t]*:[ \t]+[^\s{#]/m.test(text) &&
    (/^[ \t{]*["']?topology["']?[ \t]*:/m.test(text) || /^lab:[ \t]*(#.*)?$/m.test(text)))

/** Whether a text is JSON with a map "topology", on however many lines. */
function hasTopology(text: string): boolean {
  if (!/^\s*\{/.test(text)) return false
  try {
    return typeof JSON.parse(text).topology === 'object'
  } catch {
    return false
  }
}

/** A lab of another program as a lab file. Says what was changed. CommandError 3. */
async function imported(
  file: string,
  text: string,
  { base, isToBeSaved }: { readonly base: string; readonly isToBeSaved: boolean },
): Promise<{ document: string; nodes: readonly ImportedNode[] }> {
  const { foreignLab, lossReport, programs } = await import('./foreign-lab.ts')
  const { format, document, nodes, leftOut } = foreignLab(file, text, base)
  if (isToBeSaved)
    throw new CommandError(exits.wrong, [
      {
        message: `${file} is a lab of ${programs[format]}, not a lab file`,
        hint: `"patchbay import ${file}" makes a lab file of it`,
      },
    ])
  process.stderr.write(
    `${[`${file}: imported from ${programs[format]}`, ...lossReport(file, leftOut), ''].join('\n')}\n`,
  )
  return { document, nodes }
}

/** Checks the text of a lab file and the files that it names, which are relative to `base`. CommandError 3 with all that is wrong. */
export async function checkedLab(
  document: string,
  { name, base, allowOutside, options }: { name: string; base: string; allowOutside: boolean; options: LabFileOptions },
): Promise<Omit<LabSource, 'vars'>> {
  try {
    const values = valuesOf(document)
    const named = namedFiles(values, { ...options, allowOutside })
    const { files, diagnostics } = await readNamed(named.files, { base, allowOutside })
    const all = inOrder([...named.diagnostics, ...diagnostics])
    if (all.length > 0) throw new LabFileError(all)
    return { name, document, files, desired: await readLabFile(values, { ...options, files }) }
  } catch (error) {
    if (error instanceof LabFileError)
      throw new CommandError(exits.wrong, diagnosticsIn(name, error.diagnostics, error.more))
    throw error
  }
}

/** Members of the answer of a service to a lab file that is wrong. */
export interface WrongLabFile {
  readonly errors?: readonly LabFileDiagnostic[]
  readonly more_errors?: number
}

/** The diagnostics of a lab file as those of the command; the last one says that there are `more`. */
export const diagnosticsIn = (
  file: string,
  diagnostics: readonly LabFileDiagnostic[],
  more = 0,
): CommandDiagnostic[] => [
  ...diagnostics.map(inFile(file)),
  ...(more > 0 ? [{ message: moreDiagnostics(more), file }] : []),
]

const inFile =
  (file: string) =>
  ({ message, line, column, path, hint }: LabFileDiagnostic): CommandDiagnostic => ({
    message: path === '' ? message : `${path}: ${message}`,
    file,
    line,
    column,
    path,
    ...(hint !== undefined && { hint }),
  })

/** The lab file of the working directory, when there is only one. CommandError 64. */
export function onlyLabFile(): string {
  const found = labFilesHere()
  const [one, ...others] = found
  if (one === undefined) throw wrongArguments('expected FILE: there is no *.lab.yaml here')
  if (others.length > 0) throw wrongArguments(`expected FILE: there are several lab files here: ${found.join(', ')}`)
  return one
}

/** The lab files of the working directory. */
export const labFilesHere = (): string[] =>
  readdirSync('.')
    .filter((entry) => /^(?:lab|.+\.lab)\.(?:ya?ml|json)$/.test(entry))
    .sort()

/** Whether a word names a lab file, and not a lab. */
export const isLabFile = (word: string): boolean =>
  word === '-' || /\.(?:ya?ml|json)$/.test(word) || statSync(word, { throwIfNoEntry: false })?.isDirectory() === false

async function fromInput(): Promise<string> {
  const pieces: Uint8Array[] = []
  let size = 0
  for await (const piece of process.stdin as AsyncIterable<Uint8Array>) {
    size += piece.length
    if (size > maxBytes) throw new CommandError(exits.wrong, 'stdin: it is larger than 1 MiB')
    pieces.push(piece)
  }
  try {
    return utf8.decode(Buffer.concat(pieces))
  } catch {
    throw new CommandError(exits.wrong, `stdin: ${notText}`)
  }
}

/** The text of a file; `-`: of standard input. CommandError 3. */
export async function readText(path: string): Promise<string> {
  if (path === '-') return fromInput()
  try {
    return await contentOf(path)
  } catch (error) {
    throw new CommandError(exits.wrong, `${path}: ${reasonOf(error)}`)
  }
}

/** The contents of the files that a lab file names, by their paths as it writes them, and what is wrong with them. */
async function readNamed(
  named: ReturnType<typeof namedFiles>['files'],
  { base, allowOutside }: { base: string; allowOutside: boolean },
): Promise<{ files: Record<string, string>; diagnostics: readonly LabFileDiagnostic[] }> {
  const files: Record<string, string> = {}
  const diagnostics: LabFileDiagnostic[] = []
  const seen = new Set<string>()
  const root = await realpath(base)
  for (const { path, at } of named) {
    // That of a template is named at one place by many nodes.
    const where = `${at.line}:${at.column}`
    if (Object.hasOwn(files, path) || seen.has(where)) continue
    seen.add(where)
    try {
      const real = await realpath(resolve(base, path))
      if (!allowOutside && real !== root && !real.startsWith(root.endsWith(sep) ? root : root + sep))
        throw new Error('it is outside the directory of the lab file; --allow-outside allows it')
      files[path] = await contentOf(real)
    } catch (error) {
      diagnostics.push({ ...at, message: `${JSON.stringify(path)}: ${reasonOf(error)}` })
    }
  }
  return { files, diagnostics }
}

/** The text of a regular file of at most 1 MiB. */
async function contentOf(path: string): Promise<string> {
  // Without waiting for the other end of a pipe.
  const { O_RDONLY, O_NONBLOCK } = (await import('node:fs')).constants
  const file = await open(path, O_RDONLY | O_NONBLOCK)
  try {
    const stats = await file.stat()
    if (!stats.isFile())
      throw new Error(stats.isDirectory() ? 'it is a directory, not a file' : 'it is not a regular file')
    if (stats.size > maxBytes) throw new Error('it is larger than 1 MiB')
    return utf8.decode(await file.readFile())
  } catch (error) {
    throw error instanceof TypeError ? new Error(notText) : error
  } finally {
    await file.close()
  }
}

function variablesOf(given: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    given.map((it) => {
      const equals = it.indexOf('=')
      if (equals < 1) throw wrongArguments(`--var: expected NAME=VALUE, got ${JSON.stringify(it)}`)
      return [it.slice(0, equals), it.slice(equals + 1)]
    }),
  )
}
