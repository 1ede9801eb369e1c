import { computed, type ReadonlySignal, type Signal, signal } from '@preact/signals'
import type { Image, LabKind, LabTemplate } from '../../../src/client/patchbay.ts'
import { headBytes, type SuggestedType, suggestedFor, suggestedType } from '../../../src/importers/known-images.ts'
import { defaultOf, type FormField, fieldsOf, type Schema, valueIn } from '../forms/fields.ts'
import { imagesOf } from '../forms/images.ts'
import { ImageUpload } from '../parts/image-upload.ts'
import { client } from '../state/client.ts'

/** A node type (a template) that is being made or changed: what was entered, and the image on its way. */
export class NodeTypeDraft {
  readonly kind: LabKind
  /** Absent: it is a new one. */
  readonly template: LabTemplate | undefined
  readonly name: Signal<string>
  readonly symbol: Signal<string>
  readonly images = signal<readonly Image[]>([])
  readonly upload = signal<ImageUpload | undefined>(undefined)
  readonly fields: readonly FormField[]
  readonly isReady: ReadonlySignal<boolean>
  /** What was entered, by field. */
  readonly #entered = signal<Readonly<Record<string, string | boolean>>>({})
  /** What the chosen image suggests. */
  readonly #suggested = signal<SuggestedType | undefined>(undefined)
  /** The setting that has the chosen image: that of the kind, or of a CD-ROM. */
  readonly #imageSetting: Signal<string>
  /** The settings of the type as it is stored. */
  readonly #stored: Readonly<Record<string, unknown>>

  constructor(kind: LabKind, template?: LabTemplate) {
    this.kind = kind
    this.template = template
    this.#stored = template ?? {}
    this.fields = fieldsOf(kind.settings as Schema)
    this.name = signal(template?.name ?? '')
    this.symbol = signal(template?.symbol ?? kind.symbol)
    this.#imageSetting = signal(kind.image_setting ?? '')
    this.isReady = computed(() => {
      const upload = this.upload.value
      return this.name.value.trim() !== '' && (upload === undefined || upload.state.value === 'done')
    })
  }

  /** The setting that has the chosen image. */
  get imageSetting(): string {
    return this.#imageSetting.value
  }

  /** The chosen image; empty for none. */
  get image(): string {
    const setting = this.#imageSetting.value
    const chosen = this.#entered.value[setting] ?? this.#stored[setting]
    return typeof chosen === 'string' ? chosen : ''
  }

  /** Whether nothing is known of the machine in the chosen image: it gets the defaults. */
  get isUnknown(): boolean {
    return this.#suggested.value?.isUnknown === true
  }

  /** Takes an image that the service has, with the settings that its name suggests. */
  chooseImage(path: string): void {
    this.upload.value?.pause()
    this.upload.value = undefined
    this.#take(path, suggestedFor(this.kind.name, path))
  }

  /** Takes an image: what the one before suggested goes, and what was entered stays. */
  #take(path: string, suggested: SuggestedType | undefined): void {
    const before = this.#suggested.value
    const isNew = this.template === undefined
    const next = isNew && suggested?.kind === this.kind.name ? suggested : undefined
    const { [this.#imageSetting.value]: _, ...entered } = this.#entered.value
    this.#imageSetting.value =
      next?.settings.cdrom_image === undefined ? (this.kind.image_setting ?? '') : 'cdrom_image'
    this.#entered.value = { ...entered, [this.#imageSetting.value]: path }
    this.#suggested.value = next
    if (!isNew) return
    if (this.name.value.trim() === '' || this.name.value === before?.name) this.name.value = next?.name ?? ''
    if (this.symbol.value === (before?.symbol ?? this.kind.symbol)) this.symbol.value = next?.symbol ?? this.kind.symbol
  }

  enter(field: string, value: string | boolean): void {
    this.#entered.value = { ...this.#entered.value, [field]: value }
  }

  /** The value of a field: what was entered, or what the image suggests, or what the type has, or the default of the kind. */
  valueOf({ name }: Pick<FormField, 'name'>): unknown {
    const schema = (this.kind.settings as Schema).properties?.[name]
    return this.#entered.value[name] ?? this.#suggested.value?.settings[name] ?? this.#stored[name] ?? defaultOf(schema)
  }

  async readImages(): Promise<void> {
    if (!this.kind.has_images) return
    this.images.value = await imagesOf(this.kind.name)
  }

  /** Uploads an image, and takes it. */
  async send(file: File): Promise<void> {
    this.upload.value?.pause()
    this.upload.value = undefined
    this.#take(file.name, await suggestionOf(file))
    if (this.images.value.some(({ path, filesize }) => path === file.name && filesize === file.size)) return
    const upload = new ImageUpload(this.kind.name, file)
    this.upload.value = upload
    await upload.run()
    if (upload.state.value === 'done') await this.readImages()
  }

  /** Makes or changes the type. Rejects with what the service says, or with what is wrong in a field. */
  async save(): Promise<LabTemplate> {
    const entered = Object.entries(this.#entered.value).map(([key, text]) => {
      const field = this.fields.find((known) => known.name === key)
      return [key, typeof text === 'boolean' || field === undefined ? text : valueIn(field, text)]
    })
    const { settings = {}, category } = this.#suggested.value ?? {}
    const body = {
      ...settings,
      ...Object.fromEntries(entered),
      name: this.name.value.trim(),
      symbol: this.symbol.value,
      ...(category !== undefined && { category }),
    }
    if (this.template !== undefined)
      return client.call('PUT /v2/templates/{template_id}', {
        params: { template_id: this.template.template_id },
        body,
      })
    return client.call('POST /v2/templates', { body: { ...body, template_type: this.kind.name } })
  }
}

/** What a file suggests by its name and its first bytes; undefined: no node starts from it. */
export async function suggestionOf(file: File): Promise<SuggestedType | undefined> {
  return suggestedType(file.name, new Uint8Array(await file.slice(0, headBytes).arrayBuffer()))
}
