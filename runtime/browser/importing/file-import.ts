import { type ReadonlySignal, signal } from '@preact/signals'
import { type ApplianceImport, type LabImport, Patchbay, PatchbayError } from '../../../src/client/patchbay.ts'
import { labName } from '../../../src/labfile/names.ts'
import { abortable } from '../../../src/lib/async/abort.ts'
import type { ErrorBody } from '../../../src/model/schema/fields.ts'
import { client, send } from '../state/client.ts'
import { followJob } from '../state/follow-job.ts'
import { messageOf } from '../state/notices.ts'
import { randomId } from '../state/random-id.ts'
import { fetchWithProgress } from './fetch-with-progress.ts'
import { freeName, type GivenFile, isArchive, isLabFile, pathsIn, textOf } from './given-files.ts'
import { ImportResult } from './import-result.ts'
import { type GivenNode, rowsOf } from './node-rows.ts'

/** Timeout of an upload, ms: a day. */
const uploadMs = 86_400_000

/** How far an import is. */
export type ImportState =
  | { readonly step: 'waiting' | 'reading' | 'cancelled' }
  /** The user is asked whether the file may run programs and open files of the host. */
  | { readonly step: 'asking'; readonly untrusted: readonly UntrustedPart[] }
  /** An archive is on its way: bytes. */
  | { readonly step: 'sending'; readonly sent: number }
  /** The service makes nodes and links. */
  | { readonly step: 'making'; readonly done: number; readonly total: number }
  | { readonly step: 'done'; readonly made: 'lab' | 'template'; readonly name: string }
  | { readonly step: 'failed'; readonly reason: string }

/** What a file would run or open on the host of the service. */
export type UntrustedPart = NonNullable<ErrorBody['untrusted']>[number]

/** A part of a file that was not imported, or was imported differently. */
export type LossView = LabImport['left_out'][number]

/** An image that nodes need. */
export interface NeededImage {
  readonly image: string
  /** Where it is from, which nodes need it, and whether it is there. */
  readonly about: string
}

/** What is known of a file before it is read. */
export interface ImportOptions {
  /** Where the images come from that its nodes may lack. */
  readonly imagesFrom?: string | undefined
  /** The name of the lab, in place of that in a lab file. */
  readonly name?: string | undefined
}

/** A file that becomes a lab, or a template. The service reads it. */
export class FileImport {
  readonly file: File
  readonly #state = signal<ImportState>({ step: 'waiting' })
  readonly state: ReadonlySignal<ImportState> = this.#state
  /** Known when the file was read. */
  readonly leftOut = signal<readonly LossView[]>([])
  /** Settings of an archive that the lab did not get. */
  readonly notTaken = signal<readonly string[]>([])
  readonly images = signal<readonly NeededImage[]>([])
  /** The nodes of the lab, when it is made. */
  readonly result = signal<ImportResult | undefined>(undefined)
  /** The lab file that a lab of another program became. */
  readonly labFile = signal<string | undefined>(undefined)
  readonly #given: GivenFile<File>
  readonly #options: ImportOptions
  #nodes: readonly GivenNode[] = []
  readonly #over = new AbortController()
  #answer: (isTrusted: boolean) => void = () => {}

  constructor(given: GivenFile<File>, options: ImportOptions = {}) {
    this.#options = options
    this.file = given.file
    this.#given = given
  }

  get isRunning(): boolean {
    return ['waiting', 'reading', 'asking', 'sending', 'making'].includes(this.#state.value.step)
  }

  /** Ends a running import. The service completes what it has begun to make. */
  cancel(): void {
    this.#over.abort()
  }

  /** The answer to the question of the state `asking`: without trust the import ends. */
  answer(isTrusted: boolean): void {
    if (!isTrusted) this.cancel()
    this.#answer(isTrusted)
  }

  /** Sends a request with the file; again when the user trusts the file, and the service asks for that. */
  async #trusting<T>(over: AbortSignal, send: (query: { readonly trust?: 'true' }) => Promise<T>): Promise<T> {
    try {
      return await send({})
    } catch (error) {
      if (!(error instanceof PatchbayError) || error.code !== 'not-trusted') throw error
      const { untrusted = [] } = error.answer as unknown as Partial<ErrorBody>
      const answer = new Promise<boolean>((resolve) => {
        this.#answer = resolve
      })
      this.#state.value = { step: 'asking', untrusted }
      await abortable(answer, over)
      this.#state.value = { step: 'reading' }
      return send({ trust: 'true' })
    }
  }

  /** Never rejects: `state` has the reason of a failure. */
  async run(): Promise<void> {
    const { signal: over } = this.#over
    try {
      over.throwIfAborted()
      this.#state.value = { step: 'reading' }
      if (await isArchive(this.file)) await this.#sendArchive(over)
      else await this.#read(await textOf(this.file), over)
    } catch (error) {
      this.#state.value = over.aborted ? { step: 'cancelled' } : { step: 'failed', reason: messageOf(error) }
    }
  }

  async #sendArchive(over: AbortSignal): Promise<void> {
    const onSent = (sent: number) => {
      this.#state.value = { step: 'sending', sent }
    }
    const sender = new Patchbay({
      server: client.server,
      fetch: (url, init) => send(url, init, fetchWithProgress(onSent)),
    })
    const project_id = randomId()
    const { name, left_out, cannot_run, counts } = await this.#trusting(over, (trust) => {
      onSent(0)
      return sender.call('POST /v2/projects/{project_id}/import', {
        ...{ params: { project_id }, query: { name: this.file.name.replace(/\.\w+$/, ''), ...trust } },
        body: this.file,
        signal: over,
        timeoutMs: uploadMs,
      })
    })
    this.notTaken.value = left_out
    this.result.value = new ImportResult({ lab: name, project_id }, rowsOf(cannot_run, cannot_run, []), {
      total: (counts?.nodes ?? 0) - (counts?.segments ?? 0),
    })
    this.#state.value = { step: 'done', made: 'lab', name }
  }

  async #read(text: string, over: AbortSignal): Promise<void> {
    if (isLabFile(text)) return this.#makeLab(text, over)
    const annotations = await this.#given.annotations?.text()
    try {
      const files = this.#given.beside.map(({ name }) => name)
      const body = { text, files, ...(annotations !== undefined && { annotations }) }
      const read = await client.call('POST /v2/imports', { body, signal: over })
      this.leftOut.value = read.left_out
      this.#nodes = read.nodes
      this.labFile.value = read.text
    } catch (error) {
      const code = error instanceof PatchbayError ? error.code : ''
      if (code === 'is-appliance') return this.#makeTemplate(text, over)
      if (code !== 'is-lab-file') throw error
    }
    await this.#makeLab(this.labFile.value ?? text, over)
  }

  async #makeTemplate(text: string, over: AbortSignal): Promise<void> {
    const { template, images, left_out } = await this.#trusting(over, (query) =>
      client.call('POST /v2/templates/import', { query, body: { text }, signal: over }),
    )
    this.leftOut.value = left_out
    this.images.value = images.filter((it) => it.is_missing).map(neededOf)
    this.#state.value = { step: 'done', made: 'template', name: template.name }
  }

  async #makeLab(document: string, over: AbortSignal): Promise<void> {
    const files: Record<string, string> = {}
    for (const file of this.#given.beside) {
      const paths = pathsIn(document, file.name)
      // An empty file is one of a container; it is no configuration, as the answer says.
      const text = paths.length === 0 || file.size === 0 ? '' : await textOf(file)
      for (const path of paths) files[path] = text
    }
    const project_id = randomId()
    const params = { project_id }
    const put = (query: { name?: string; dry_run?: 'true'; trust?: 'true' }) =>
      client.call('PUT /v2/projects/{project_id}/topology', {
        params,
        query: { ...query, partial: 'true' },
        body: { document, files },
        signal: over,
      })
    const { lab } = await put({ dry_run: 'true' })
    const taken = await client.call('GET /v2/projects', { signal: over })
    const { name: wanted } = this.#options
    const name = freeName(
      wanted === undefined ? lab : labName(wanted),
      taken.map((it) => it.name),
    )
    const plan = await this.#trusting(over, (trust) => put({ name, ...trust }))
    const show = (done: number, total: number) => {
      this.#state.value = { step: 'making', done, total }
    }
    if (plan.job_id !== undefined) await this.#follow(plan.job_id, over, show)
    const { nodes } = await client.call('GET /v2/projects/{project_id}/topology', { params, signal: over })
    const rows = rowsOf(
      nodes.map((node) => ({ name: node.name, kind: node.node_type })),
      plan.cannot_run ?? [],
      this.#nodes,
      this.#options.imagesFrom,
    )
    const again = async () => {
      // The service remembers what was trusted.
      const { cannot_run = [], job_id } = await put({ name })
      if (job_id !== undefined) await this.#follow(job_id, over, () => {})
      return cannot_run
    }
    this.result.value = new ImportResult({ lab: name, project_id }, rows, { again })
    this.#state.value = { step: 'done', made: 'lab', name }
  }

  async #follow(job_id: string, over: AbortSignal, show: (done: number, total: number) => void): Promise<void> {
    const { status, reason } = await followJob(job_id, over, ({ done, total }) => show(done, total))
    if (status !== 'done') throw new Error(reason ?? `The job was ${status}.`)
  }
}

const neededOf = ({ image, md5, from }: ApplianceImport['images'][number]): NeededImage => ({
  image,
  about: ['missing', ...(md5 === null ? [] : [`MD5 ${md5}`]), ...(from === null ? [] : [from])].join(', '),
})
