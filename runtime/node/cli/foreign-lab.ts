import { existsSync, lstatSync, readdirSync, readFileSync, realpathSync, type Stats, statSync } from 'node:fs'
import { join, resolve, sep } from 'node:path'
import type { ConvertedLab } from '../../../src/importers/draft.ts'
import { decodedText } from '../../../src/importers/encoding.ts'
import type { FileBeside } from '../../../src/importers/files-beside.ts'
import { importLabFile } from '../../../src/importers/formats.ts'
import { withoutVerdict } from '../../../src/importers/loss.ts'
import type { LeftOut } from '../../../src/importers/source.ts'
import { LabFileError } from '../../../src/labfile/lab-file-error.ts'
import { labFileText } from '../../../src/labfile/text.ts'
import { ApiError } from '../../../src/lib/errors/api-error.ts'
import type { LabFormat } from '../../../src/model/lab/import.ts'
import { reasonOf } from '../os/system/error-reason.ts'
import { CommandError, exits } from './exits.ts'
import { diagnosticsIn } from './lab-file.ts'
import { shown, tableOf } from './table.ts'

/** A lab of another program as a lab file, and what must be said of it. */
interface ForeignLab extends ConvertedLab {
  readonly format: LabFormat
  /** The text of the lab file. */
  readonly document: string
}

/** How people write the names of the other programs. */
export const programs = { containerlab: 'containerlab', gns3: 'GNS3', cml: 'CML' } as const satisfies Record<
  LabFormat,
  string
>

/** Reads a lab of containerlab, GNS3 or CML; `base` is the directory of the files that it names. CommandError 3. */
export function foreignLab(file: string, text: string, base: string): ForeignLab {
  const annotations = `${file}.annotations.json`
  const beside = new Map<string, FileBeside[]>()
  const found = withFile(file, () =>
    importLabFile({
      text,
      hasFile: (path) => isTextBelow(base, path),
      filesAt: (path) => {
        const files = beside.get(path) ?? filesBelow(base, path)
        beside.set(path, files)
        return files
      },
      ...(existsSync(annotations) && { annotations: readAnnotations(annotations) }),
    }),
  )
  return { ...found, document: labFileText(found.file) }
}

/** The nodes that cannot run and the images that the others need, for people. */
export const neededReport = (file: string, { nodes, images }: Pick<ForeignLab, 'nodes' | 'images'>): string[] => [
  ...linesOf(
    'Cannot run here',
    nodes.flatMap(({ cannotRun, line, column, name, from }) =>
      cannotRun === undefined ? [] : [`${file}:${line}:${column}: ${name} (${from || 'no kind'}): ${cannotRun}`],
    ),
  ),
  ...(images.length === 0
    ? []
    : [
        '',
        'Required images',
        tableOf(
          ['IMAGE', 'KIND', 'NODES'],
          images.map((image) => [image.image, image.kind, image.nodes.join(' ')]),
        ),
        ...new Set(
          nodes.flatMap(({ cannotRun, hint = '' }) => (cannotRun !== undefined || hint === '' ? [] : shown(hint))),
        ),
      ]),
]

/** What was changed and what was left out, for people. */
export const lossReport = (file: string, losses: readonly LeftOut[]): string[] => [
  ...linesOf('Changed', lossLines(file, losses, 'changed')),
  ...linesOf('Left out', lossLines(file, losses, 'left-out')),
]

/** The lines of one effect, without the words that the title says. */
const lossLines = (file: string, losses: readonly LeftOut[], effect: LeftOut['effect']): string[] =>
  losses
    .filter((loss) => loss.effect === effect)
    .map(({ line, column, path, message }) => {
      const text = effect === 'left-out' ? withoutVerdict(message) : message
      return [`${file}:${line}:${column}`, ...(path === '' ? [] : [path]), ...(text === '' ? [] : [text])].join(': ')
    })

const linesOf = (title: string, lines: readonly string[]): string[] =>
  lines.length === 0 ? [] : ['', title, ...lines.map((line) => `  ${shown(line)}`)]

/** Runs a reader of the file, and adds the name of the file to its diagnostics. */
function withFile<T>(file: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (error instanceof LabFileError)
      throw new CommandError(exits.wrong, diagnosticsIn(file, error.diagnostics, error.more))
    if (error instanceof ApiError) throw new CommandError(exits.wrong, [{ message: error.message, file }])
    throw error
  }
}

function readAnnotations(file: string): string {
  try {
    return decodedText(readFileSync(file)).text
  } catch (cause) {
    throw new CommandError(exits.wrong, `${file} cannot be read: ${reasonOf(cause)}`, { cause })
  }
}

/** Largest file that a lab file may name, bytes. */
const maxBytes = 1 << 20

/** What is at a path below a directory; links may not lead out of it. */
function statBelow(directory: string, path: string): Stats | undefined {
  try {
    const root = realpathSync(directory)
    const file = realpathSync(resolve(root, path))
    return file.startsWith(root.endsWith(sep) ? root : root + sep) ? statSync(file) : undefined
  } catch {
    return undefined
  }
}

/** Whether a file has text, and at most as much as a lab file may name. */
function isText(file: string, { size }: Stats): boolean {
  if (size > maxBytes) return false
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file))
    return true
  } catch {
    return false
  }
}

/** Whether a path leads to a text below a directory that may be a configuration. */
function isTextBelow(directory: string, path: string): boolean {
  const stats = statBelow(directory, path)
  return stats?.isFile() === true && stats.size > 0 && isText(resolve(directory, path), stats)
}

/** Most files and directories that are looked at for one path. */
const maxEntries = 1000

/** The files at a path: itself, or those in the directory and in directories below it, but for links to directories. */
function filesBelow(directory: string, path: string): FileBeside[] {
  const found: FileBeside[] = []
  const open = [path]
  for (const next of open) {
    const stats = statBelow(directory, next)
    const file = resolve(directory, next)
    if (stats?.isDirectory() === true && (next === path || !lstatSync(file).isSymbolicLink())) {
      const names = namesIn(file).slice(0, maxEntries - open.length)
      open.push(...names.map((name) => join(next, name)))
    } else if (stats?.isFile() === true)
      found.push({ path: next, isText: isText(file, stats), isProgram: (stats.mode & 0o111) !== 0 })
  }
  return found
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory).sort()
  } catch {
    return []
  }
}
