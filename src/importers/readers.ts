import { type LabFileInput, readLabFile } from '../labfile/read.ts'
import { labFileText } from '../labfile/text.ts'
import type { LabImport } from '../model/lab/import.ts'
import { importAppliance } from './appliance.ts'
import { filesNamed } from './files-beside.ts'
import { type ImportInput, importLabFile } from './formats.ts'
import { Source } from './source.ts'

/**
 * What reads files that clients send, which may be made to keep a reader busy. Input and results are plain values, so that a host may
 * read in another thread, with limits of its own. All throw ApiError: 400 for what is wrong in a file, 413 for one that is too large.
 */
export const readers = {
  labFile: ({ document, ...options }: LabFileInput & { readonly document: string }) => readLabFile(document, options),

  labImport({
    files,
    ...input
  }: Omit<ImportInput, 'hasFile' | 'filesAt'> & { files?: readonly string[] | undefined }): LabImport {
    const filesAt = files === undefined ? undefined : filesNamed(files)
    const hasFile = (path: string) => filesAt?.(path).some((it) => it.path === path) === true
    const read = importLabFile({ ...input, ...(filesAt !== undefined && { hasFile, filesAt }) })
    const { format, file, images, leftOut } = read
    const nodes = read.nodes.map(({ cannotRun, ...node }) => ({
      ...node,
      ...(cannotRun !== undefined && { cannot_run: cannotRun }),
    }))
    const made = images.map((image) => ({ ...image, nodes: [...image.nodes] }))
    return { format, lab: file.lab, text: labFileText(file), nodes, images: made, left_out: [...leftOut] }
  },

  appliance: ({ text, version }: { readonly text: string; readonly version: string | undefined }) =>
    importAppliance(new Source(text), { version }),
}

export type ReaderName = keyof typeof readers
type ReaderInput<Name extends ReaderName> = Parameters<(typeof readers)[Name]>[0]
type ReaderResult<Name extends ReaderName> = Awaited<ReturnType<(typeof readers)[Name]>>

/** Reads a file. Rejects as the reader does, and with 413 or 503 for the limits of the host. */
export type ReadFile = <Name extends ReaderName>(name: Name, input: ReaderInput<Name>) => Promise<ReaderResult<Name>>

/** Reads in this thread, where there is no other. */
export const readHere: ReadFile = async (name, input) => (await readers[name](input as never)) as never
