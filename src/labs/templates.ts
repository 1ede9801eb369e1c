import { v5 } from 'uuid'
import { conflict, forbidden, notFound } from '../lib/errors/api-error.ts'
import { kinds } from '../model/kinds/index.ts'
import { type KindDescriptor, symbolOfKind } from '../model/kinds/kind.ts'
import { kindOf } from '../model/kinds/node.ts'
import type { LabListEvent } from '../model/lab/event.ts'
import { freeName, nameKey } from '../model/lab/names.ts'
import { isKnownKind, type LabNode, type LabNodeCreate, mapFields } from '../model/lab/node.ts'
import {
  LabTemplate,
  type LabTemplateCreate,
  type LabTemplateUpdate,
  type LabTemplateUse,
} from '../model/lab/template.ts'
import type { ComputeAgents } from './computes/agents.ts'
import type { Conventions } from './lab/conventions.ts'
import { withoutNulls } from './lab/fields.ts'
import type { Lab } from './lab/lab.ts'
import { type LabLimits, limitReached } from './lab/lab-limits.ts'
import type { SharedDocument } from './lab/shared-document.ts'
import { createNode } from './nodes/create-node.ts'
import { noSuchKind } from './nodes/node-settings.ts'
import type { Labs } from './service.ts'

/** Namespace of the ids of built-in templates (RFC 9562, 5.5). */
const namespace = 'a8a7a5b0-6d0c-4f5a-9a3a-3f1c5b2b7f10'
const list: readonly KindDescriptor[] = kinds

/** The id of the template that is built in for a kind. */
export const builtInId = (kind: string): string => v5(kind, namespace)

/** Made at the first use: hashing the ids would add 2 ms to a start of the service. */
let known: readonly LabTemplate[] | undefined
const builtIn = (): readonly LabTemplate[] =>
  (known ??= list.flatMap(({ name, template }) =>
    template === undefined
      ? []
      : {
          template_id: builtInId(name),
          name: template.name,
          template_type: name,
          compute_id: null,
          category: template.category,
          default_name_format: template.nameFormat,
          symbol: template.symbol,
          usage: '',
          builtin: true,
        },
  ))

interface TemplatesOptions {
  readonly own: SharedDocument<LabTemplate>
  readonly limits: () => LabLimits
  readonly emit: (event: LabListEvent) => void
}

/** The templates of a service: the built-in ones of the kinds, and those of its users. */
export class Templates {
  readonly #own: SharedDocument<LabTemplate>
  readonly #limits: () => LabLimits
  readonly #emit: TemplatesOptions['emit']

  constructor({ own, limits, emit }: TemplatesOptions) {
    this.#own = own
    this.#limits = limits
    this.#emit = emit
  }

  /** Reads the templates from the store again, where another process writes them. */
  reload(): Promise<void> {
    return this.#own.reload()
  }

  #requireRoom = (count: number): void => {
    const max = this.#limits().templates
    if (count >= max)
      throw limitReached(`Users are limited to ${max} templates and have ${count}: delete one first`, 'templates')
  }

  list(): LabTemplate[] {
    return [...builtIn(), ...this.#own.values.values()]
  }

  /** Finds a template by its id, or by its name in any case. 404. */
  get(idOrName: string): LabTemplate {
    const key = nameKey(idOrName)
    const found =
      this.#own.values.get(key) ??
      builtIn().find(({ template_id }) => template_id === key) ??
      this.list().find(({ name }) => nameKey(name) === key)
    if (found !== undefined) return found
    throw notFound(`template_id: there is no template ${idOrName}`, { code: 'no-such-template' })
  }

  /** Makes a template; of a name that another one has, `FRR` becomes `FRR-2`. `keepsName`: GNS3 has several of one name. */
  async create(input: LabTemplateCreate, { keepsName = false } = {}): Promise<LabTemplate> {
    const template_id = input.template_id?.toLowerCase() ?? crypto.randomUUID()
    if (this.list().some((it) => it.template_id === template_id))
      throw conflict(`template_id: a template ${template_id} already exists`)
    const { category, default_name_format, symbol, usage, compute_id, ...rest } = input
    const kind = isKnownKind(input.template_type) ? (kindOf(input.template_type) as KindDescriptor) : undefined
    const template: LabTemplate = {
      ...rest,
      ...kind?.typeDefaults?.(rest),
      name: keepsName ? input.name : this.#freeName(input.name),
      template_id,
      compute_id: compute_id ?? null,
      category: category ?? kind?.template?.category ?? 'guest',
      default_name_format: default_name_format ?? '{name}-{0}',
      symbol: symbol ?? (kind === undefined ? 'computer' : symbolOfKind(kind)),
      usage: usage ?? '',
      builtin: false,
    }
    await this.#own.save(template_id, template, this.#requireRoom)
    this.#emit({ action: 'template.created', event: template })
    return template
  }

  #freeName(name: string): string {
    const names = new Set(this.list().map((it) => nameKey(it.name)))
    // Its number has a hyphen before it: the name may end with the number of a version.
    return names.has(nameKey(name)) ? freeName(`${name.slice(0, 250)}-2`, (key) => names.has(key)) : name
  }

  async update(idOrName: string, changes: LabTemplateUpdate): Promise<LabTemplate> {
    const before = this.#ownOf(idOrName)
    // null leaves the fields of every template as they are; that of the compute, and those of the kind, may be null.
    const { name, category, default_name_format, symbol, usage, ...rest } = changes
    const template: LabTemplate = {
      ...before,
      ...Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined)),
      ...withoutNulls({ name, category, default_name_format, symbol, usage }),
      template_id: before.template_id,
      builtin: false,
    }
    await this.#own.save(template.template_id, template, this.#requireRoom)
    this.#emit({ action: 'template.updated', event: template })
    return template
  }

  async remove(idOrName: string): Promise<void> {
    const template = this.#ownOf(idOrName)
    await this.#own.save(template.template_id, undefined, this.#requireRoom)
    this.#emit({ action: 'template.deleted', event: template })
  }

  /** Copies a template under a new id. The copy of a built-in template can be changed. */
  duplicate(idOrName: string): Promise<LabTemplate> {
    const { template_id: _, builtin: __, ...rest } = this.get(idOrName)
    return this.create({ ...rest, name: `${rest.name}-copy`.slice(0, 255) })
  }

  #ownOf(idOrName: string): LabTemplate {
    const template = this.get(idOrName)
    if (!template.builtin) return template
    throw forbidden(`template_id: ${template.name} is built in and cannot be changed; duplicate it and change the copy`)
  }
}

/** Creates a node from a template. 400 when this service lacks its kind. */
export function useTemplate(
  labs: Labs,
  lab: Lab,
  template: LabTemplate,
  {
    use,
    agentFor,
    conventions,
  }: { use: LabTemplateUse; agentFor: ComputeAgents; conventions?: Conventions | undefined },
): Promise<LabNode> {
  const { template_id, name, template_type, compute_id, default_name_format, symbol, usage } = template
  if (!isKnownKind(template_type)) throw noSuchKind('template_type', template_type)
  const { console_type } = template as { console_type?: unknown }
  const known = new Set(Object.keys(kindOf(template_type).create.properties))
  const settings = Object.entries(template).filter(([key]) => !(key in LabTemplate.properties))
  const ofMap = settings.filter(([key]) => key in mapFields && key !== 'label')
  const ofKind = settings.filter(([key]) => known.has(key) && key !== 'console_type' && !(key in mapFields))
  const ofItsKind = { ...(known.has('usage') && { usage }), ...Object.fromEntries(ofKind) }
  const input: LabNodeCreate = {
    ...Object.fromEntries(ofMap),
    name:
      use.name ??
      (conventions === undefined ? nameOf(default_name_format, name, lab) : formatOf(default_name_format, name)),
    node_type: template_type,
    template_id,
    compute_id: use.compute_id ?? compute_id,
    symbol,
    x: use.x,
    y: use.y,
    ...(typeof console_type === 'string' && { console_type }),
    properties: conventions?.templateSettings(template, ofItsKind) ?? ofItsKind,
  }
  return createNode(labs, lab, input, { agentFor, conventions })
}

const formatOf = (format: string, template: string): string =>
  (format === '' ? '{name}-{0}' : format).replaceAll('{name}', template)

/** The name of a node by the format of its template: `PC{0}` becomes `PC1`, or has the next free number. */
function nameOf(format: string, template: string, lab: Lab): string {
  const named = formatOf(format, template)
  const taken = new Set([...lab.document.nodes.values()].map(({ name }) => nameKey(name)))
  if (!/\{(0|id)\}/.test(named)) return named.slice(0, 255)
  for (let number = 1; ; number++) {
    const name = named.replaceAll(/\{(0|id)\}/g, String(number)).slice(0, 255)
    if (!taken.has(nameKey(name)) && !lab.claimed.has(`name/${nameKey(name)}`)) return name
  }
}
