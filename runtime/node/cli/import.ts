import { existsSync, openAsBlob } from 'node:fs'
import { access, open, readFile, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { buffer as bytesOf } from 'node:stream/consumers'
import { PatchbayError } from '../../../src/client/patchbay-error.ts'
import { decodedText } from '../../../src/importers/encoding.ts'
import type { LeftOut } from '../../../src/importers/source.ts'
import { counted } from '../../../src/lib/text/counted.ts'
import { replaceFiles } from '../engine/storage/user-file.ts'
import { reasonOf } from '../os/system/error-reason.ts'
import { clientOf } from './client.ts'
import type { CommandInput, ServiceFlags } from './command.ts'
import type { importing } from './command-flags.ts'
import { CommandError, exits } from './exits.ts'
import { foreignLab, lossReport, neededReport, programs } from './foreign-lab.ts'
import { checkedLab, diagnosticsIn, type WrongLabFile } from './lab-file.ts'
import type { CommandOutcome } from './outcome.ts'
import { shown, tableOf } from './table.ts'
import { trusting } from './trust.ts'

type Input = CommandInput<typeof importing>

/** `patchbay import FILE`: a lab file of a lab of another program; a project of an archive; a template of an appliance. */
export async function importCommand(input: Input): Promise<CommandOutcome> {
  const [file = '-'] = input.args
  if (/\.gns3project$/i.test(file) || (await isArchive(file))) return importArchive(file, input)
  const { text, note } = decodedText(await contentOf(file))
  const notes = note === undefined ? [] : [{ line: 1, column: 1, path: '', effect: 'changed' as const, message: note }]
  return /\.gns3a$/i.test(file)
    ? importAppliance(file, { text, notes }, input)
    : importLab(file, { text, notes }, input)
}

/** A file as text, and what must be said of it. */
interface Content {
  readonly text: string
  readonly notes: readonly LeftOut[]
}

async function importLab(file: string, { text, notes }: Content, { flags }: Input): Promise<CommandOutcome> {
  const directory = file === '-' ? '.' : dirname(file)
  const to = flags.to ?? (file === '-' ? '-' : join(directory, `${stemOf(file)}.lab.yaml`))
  const isPrinted = to === '-'
  const base = resolve(isPrinted ? directory : dirname(to))
  const foreign = foreignLab(file, text, base)
  const { format, file: data, nodes, images, leftOut: parts, document: lab } = foreign
  const leftOut = [...notes, ...parts]
  await checkedLab(lab, { name: isPrinted ? 'stdout' : to, base, allowOutside: false, options: {} })
  if (!isPrinted && existsSync(to) && !flags.force)
    throw new CommandError(exits.wrong, [
      { message: `${to} already exists`, hint: '--force overwrites it, --to FILE writes another file' },
    ])
  if (!isPrinted)
    await replaceFiles([{ path: to, text: lab }]).catch((cause) => {
      throw new CommandError(exits.failed, `${to} cannot be written: ${reasonOf(cause)}`, { cause })
    })
  const contents = [
    [Object.keys(data.nodes).length, 'node'],
    [Object.keys(data.segments ?? {}).length, 'segment'],
    [data.links?.length ?? 0, 'link'],
  ] as const
  const counts = contents.map(([number, word]) => counted(number, word)).join(', ')
  const report = [
    ...(isPrinted ? [] : [`${to}: ${counts}, from ${programs[format]}`]),
    ...neededReport(file, foreign),
    ...lossReport(file, leftOut),
    ...(isPrinted ? [] : ['', `"patchbay up ${to}" creates the lab and starts it`]),
  ].join('\n')
  if (isPrinted) process.stderr.write(report === '' ? '' : `${report.trim()}\n`)
  return {
    json: { file: to, format, lab: data.lab, ...(isPrinted && { text: lab }), nodes, images, left_out: leftOut },
    text: () => (isPrinted ? lab.trimEnd() : report),
  }
}

/** An archive goes to the service: it has the disks and files of its nodes. */
async function importArchive(file: string, { flags, signal }: Input): Promise<CommandOutcome> {
  const body = await blobOf(file)
  const client = await clientOf(flags as ServiceFlags)
  const project_id = crypto.randomUUID()
  const query = flags.name === undefined ? {} : { name: flags.name }
  const project = await trusting(file, flags, (trust) =>
    client.call('POST /v2/projects/{project_id}/import', {
      params: { project_id },
      query: { ...query, ...trust },
      body,
      signal,
    }),
  ).catch(refusedOf(file))
  const { name, left_out, cannot_run } = project
  return {
    json: { lab: name, project_id, left_out, cannot_run },
    text: () =>
      [
        `Imported ${shown(name)} (closed); "patchbay start ${shown(name)}" starts it`,
        ...(left_out.length === 0 ? [] : [`Left out: ${shown(left_out.join(', '))}`]),
        ...(cannot_run.length === 0 ? [] : ['', 'Cannot run here']),
        ...cannot_run.map((node) => `  ${shown(`${node.name} (${node.kind}): ${node.reason}`)}`),
      ].join('\n'),
  }
}

/** An appliance becomes a template of the service. */
async function importAppliance(
  file: string,
  { text, notes }: Content,
  { flags, signal }: Input,
): Promise<CommandOutcome> {
  const client = await clientOf(flags as ServiceFlags)
  const { name, version } = flags
  const body = { text, ...(name !== undefined && { name }), ...(version !== undefined && { version }) }
  const { template, versions, images, left_out } = await trusting(file, flags, (query) =>
    client.call('POST /v2/templates/import', { query, body, signal }),
  ).catch(refusedOf(file))
  const missing = images.filter((it) => it.is_missing)
  return {
    json: {
      template: template.name,
      template_id: template.template_id,
      versions,
      images,
      left_out: [...notes, ...left_out],
    },
    text: () =>
      [
        `Created the template ${shown(template.name)}`,
        ...(missing.length === 0
          ? []
          : [
              '',
              'Missing images',
              tableOf(
                ['IMAGE', 'MD5', 'FROM'],
                missing.map(({ image, md5, from }) => [image, md5 ?? '', from ?? '']),
              ),
            ]),
        ...lossReport(file, [...notes, ...left_out]),
      ].join('\n'),
  }
}

/** For `catch`: adds the name of the file to the diagnostics that the service finds in it. CommandError 3. */
const refusedOf =
  (file: string) =>
  (error: unknown): never => {
    if (!(error instanceof PatchbayError) || error.status !== 400) throw error
    const { errors, more_errors } = error.answer as WrongLabFile
    const diagnostics = Array.isArray(errors)
      ? diagnosticsIn(file, errors, more_errors)
      : [{ message: error.message, file }]
    throw new CommandError(exits.wrong, diagnostics, { cause: error })
  }

async function contentOf(file: string): Promise<Uint8Array> {
  if (file === '-') return bytesOf(process.stdin)
  return readFile(file).catch((cause) => {
    throw unreadable(file, cause)
  })
}

/** CommandError 3. */
async function blobOf(file: string): Promise<Blob> {
  try {
    await access(file)
    return await openAsBlob(file)
  } catch (cause) {
    throw unreadable(file, cause)
  }
}

const unreadable = (file: string, cause: unknown): CommandError =>
  new CommandError(exits.wrong, `${file} cannot be read: ${reasonOf(cause)}`, { cause })

/** Whether a file begins as a zip archive (APPNOTE.TXT 4.3.7). */
async function isArchive(file: string): Promise<boolean> {
  try {
    // What is read of a pipe is gone.
    if (file === '-' || !(await stat(file)).isFile()) return false
    await using handle = await open(file)
    const { buffer } = await handle.read(Buffer.alloc(4), 0, 4, 0)
    return buffer.toString('latin1') === 'PK\x03\x04'
  } catch {
    return false
  }
}

/** `two.clab.yml` and `two.gns3` become `two`. */
const stemOf = (file: string): string => basename(file).replace(/(\.clab)?\.(ya?ml|json|gns3)$/i, '')
