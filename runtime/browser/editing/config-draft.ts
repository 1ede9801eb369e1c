import { computed, signal } from '@preact/signals'
import { type Patchbay, PatchbayError } from '../../../src/client/patchbay.ts'
import { messageOf } from '../state/notices.ts'

/** Which configuration of which node. */
export interface ConfigRef {
  readonly project_id: string
  readonly node_id: string
  /** As the kind names it, such as `startup`. */
  readonly name: string
}

const changedMeanwhile =
  'The configuration was changed meanwhile. The difference is shown against the current one: save to replace it, or discard your text.'

/** What was typed and is not saved, also of labs that are not shown now. */
const unsaved = new Map<string, string>()
const keyOf = ({ project_id, node_id, name }: ConfigRef): string => `${project_id}/${node_id}/${name}`

/** Whether a text was typed that no lab has. */
export const hasUnsavedTexts = (): boolean => unsaved.size > 0

/** Forgets what was typed: it is not for the next user of the page. */
export const forgetUnsavedTexts = (): void => unsaved.clear()

/** A configuration of a node: the text that the service has, and the one that was typed instead. */
export class ConfigDraft {
  /** What the service has; undefined: it was not read yet. */
  readonly saved = signal<string | undefined>(undefined)
  /** Why it could not be read or saved. */
  readonly failure = signal('')
  readonly isSaving = signal(false)
  readonly #typed = signal<string | undefined>(undefined)
  readonly text = computed(() => this.#typed.value ?? this.saved.value ?? '')
  readonly isChanged = computed(() => this.#typed.value !== undefined && this.#typed.value !== this.saved.value)
  readonly #client: Patchbay
  readonly #ref: ConfigRef
  #etag = ''
  /** Fields of a page have LF only (HTML, 4.10.11): a text with CR LF gets them back. */
  #hasCr = false

  constructor(client: Patchbay, ref: ConfigRef) {
    this.#client = client
    this.#ref = ref
    this.#typed.value = unsaved.get(keyOf(ref))
  }

  type(text: string): void {
    this.#typed.value = text
    if (text === this.saved.value) unsaved.delete(keyOf(this.#ref))
    else unsaved.set(keyOf(this.#ref), text)
  }

  discard(): void {
    this.#typed.value = undefined
    unsaved.delete(keyOf(this.#ref))
    this.failure.value = ''
  }

  /** Reads what the service has; what was typed stays. Never rejects. */
  async read(): Promise<void> {
    try {
      const answer = await this.#client.answer('GET /v2/projects/{project_id}/nodes/{node_id}/config', this.#input)
      const text = await answer.text()
      this.#etag = answer.headers.get('etag') ?? ''
      this.#hasCr = text.includes('\r\n')
      const saved = text.replaceAll('\r\n', '\n')
      if (this.isChanged.value && saved !== this.saved.value) this.failure.value = changedMeanwhile
      this.saved.value = saved
    } catch (error) {
      this.failure.value = messageOf(error)
    }
  }

  /** Saves the typed text, unless another client has changed the configuration meanwhile. After a refusal, in `failure`, the typed text stays. */
  async save(): Promise<void> {
    const sent = this.text.value
    this.isSaving.value = true
    try {
      const answer = await this.#client.answer('PUT /v2/projects/{project_id}/nodes/{node_id}/config', {
        ...this.#input,
        headers: { 'if-match': this.#etag },
        body: this.#hasCr ? sent.replaceAll('\n', '\r\n') : sent,
      })
      this.#etag = answer.headers.get('etag') ?? ''
      this.saved.value = sent
      if (this.#typed.value === sent) this.discard()
      this.failure.value = ''
    } catch (error) {
      this.failure.value = messageOf(error)
      if (error instanceof PatchbayError && error.status === 412) await this.read()
    } finally {
      this.isSaving.value = false
    }
  }

  get #input(): { params: { project_id: string; node_id: string }; query: { name: string } } {
    const { name, ...params } = this.#ref
    return { params, query: { name } }
  }
}
