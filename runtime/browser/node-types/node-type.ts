import { computed, type ReadonlySignal, type Signal, signal } from '@preact/signals'
import type { CallName, Image, LabKind, LabTemplate } from '../../../src/client/patchbay.ts'
import { headBytes, type SuggestedType, suggestedType } from '../../../src/importers/known-images.ts'
import { type FormField, fieldsOf, type Schema, valueIn } from '../forms/fields.ts'
import { ImageUpload } from '../parts/image-upload.ts'
import { client } from '../state/client.ts'

type KindOf<T> = T extends `GET /v2/compute/${infer K}/images` ? K : never
/** A kind whose nodes start from images. */
type ImageKind = KindOf<CallName>

/** A node type (a template) that is being made or changed: what was typed, and the image on its way. */
export class NodeTypeDraft {
  readonly kind: LabKind
  /** Absent: it is a new one. */
  readonly template: LabTemplate | undefined
  readonly name = signal('')
  readonly symbol: Signal<string>
  readonly images = signal<readonly Image[]>([])
  readonly upload = signal<ImageUpload | undefined>(undefined)
  /** What was typed, by field. */
  readonly typed = signal<Readonly<Record<string, string | boolean>>>({})
  readonly fields: readonly FormField[]
  readonly isReady: ReadonlySignal<boolean>
  /** The settings of the type as it is stored. */
  readonly #stored: Readonly<Record<string, unknown>>
  #category: string | undefined

  constructor(kind: LabKind, template?: LabTemplate, suggested?: SuggestedType) {
    this.kind = kind
    this.template = template
    this.#stored = template ?? {}
    this.fields = fieldsOf(kind.settings as Schema)
    this.name.value = template?.name ?? suggested?.name ?? ''
    this.symbol = signal(template?.symbol ?? kind.symbol)
    if (suggested !== undefined) this.suggest(suggested)
    this.isReady = computed(() => {
      const upload = this.upload.value
      return this.name.value.trim() !== '' && (upload === undefined || upload.state.value === 'done')
    })
  }

  /** Takes the settings that an image suggests, where the user has typed nothing else. */
  suggest({ name, category, symbol, settings }: SuggestedType): void {
    if (this.name.value.trim() === '') this.name.value = name
    this.#category = category
    this.symbol.value = symbol
    const texts = Object.entries(settings).map(([key, value]) => [key, String(value)] as const)
    this.typed.value = { ...Object.fromEntries(texts), ...this.typed.value, ...this.#imageIn(settings) }
  }

  /** The image itself is what was chosen last. */
  #imageIn(settings: SuggestedType['settings']): Record<string, string> {
    const entries = Object.entries(settings).filter(([key]) => key === this.kind.image_setting || key === 'cdrom_image')
    return Object.fromEntries(entries.map(([key, value]) => [key, String(value)]))
  }

  /** The chosen image; empty for none. */
  get image(): string {
    const setting = this.kind.image_setting ?? ''
    const chosen = this.typed.value[setting] ?? this.#stored[setting]
    return typeof chosen === 'string' ? chosen : ''
  }

  /** Takes an image that the service has, with the settings that its name suggests. */
  chooseImage(path: string): void {
    const suggested = suggestedType(path.split('/').at(-1) ?? '', new Uint8Array())
    if (suggested?.kind === this.kind.name && this.template === undefined) this.suggest(suggested)
    if (this.kind.image_setting !== null) this.type(this.kind.image_setting, path)
  }

  type(field: string, value: string | boolean): void {
    this.typed.value = { ...this.typed.value, [field]: value }
  }

  /** The value of a field: what was typed, or what the type has, or the default of the kind. */
  valueOf(field: FormField): unknown {
    const schema = (this.kind.settings as Schema).properties?.[field.name]
    return this.typed.value[field.name] ?? this.#stored[field.name] ?? defaultOf(schema)
  }

  async readImages(): Promise<void> {
    if (!this.kind.has_images) return
    const kind = this.kind.name as ImageKind
    this.images.value = await client.call(`GET /v2/compute/${kind}/images`)
  }

  /** Uploads an image, and takes it when it is stored. */
  async send(file: File): Promise<void> {
    this.upload.value?.pause()
    const setting = this.kind.image_setting
    const suggested = await suggestionOf(file)
    if (suggested?.kind === this.kind.name) this.suggest(suggested)
    else if (setting !== null) this.type(setting, file.name)
    if (this.images.value.some(({ path, filesize }) => path === file.name && filesize === file.size)) {
      this.upload.value = undefined
      return
    }
    const upload = new ImageUpload(this.kind.name, file)
    this.upload.value = upload
    await upload.run()
    if (upload.state.value === 'done') await this.readImages()
  }

  /** Makes or changes the type. Rejects with what the service says, or with what is wrong in a field. */
  async save(): Promise<LabTemplate> {
    const settings = Object.entries(this.typed.value).map(([key, text]) => {
      const field = this.fields.find((known) => known.name === key)
      return [key, typeof text === 'boolean' || field === undefined ? text : valueIn(field, text)]
    })
    const body = { ...Object.fromEntries(settings), name: this.name.value.trim(), symbol: this.symbol.value }
    if (this.template !== undefined)
      return client.call('PUT /v2/templates/{template_id}', {
        params: { template_id: this.template.template_id },
        body,
      })
    const category = this.#category
    return client.call('POST /v2/templates', {
      body: { ...body, ...(category !== undefined && { category }), template_type: this.kind.name },
    })
  }
}

/** What a file suggests by its name and its first bytes; undefined: no node starts from it. */
export async function suggestionOf(file: File): Promise<SuggestedType | undefined> {
  return suggestedType(file.name, new Uint8Array(await file.slice(0, headBytes).arrayBuffer()))
}

const defaultOf = (schema: Schema | undefined): unknown =>
  schema?.default ?? schema?.anyOf?.find((member) => member.default !== undefined)?.default
