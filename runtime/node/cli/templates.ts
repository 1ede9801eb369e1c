import { open, stat } from 'node:fs/promises'
import { basename } from 'node:path'
import type { LabKind, LabTemplate, LabTemplateCreate } from '../../../src/client/patchbay.ts'
import { headBytes, suggestedFor, suggestedType } from '../../../src/importers/known-images.ts'
import { type CommandContext, clientOf } from './client.ts'
import type { CommandInput, serviceFlags } from './command.ts'
import type { templateAdding } from './command-flags.ts'
import { CommandError, exits, notFound, wrongArguments } from './exits.ts'
import { imageFinder, pushFiles } from './images.ts'
import type { CommandOutcome } from './outcome.ts'

/** `patchbay templates ls`: the node types of a service. */
export async function templatesLs({ flags, signal }: CommandInput<typeof serviceFlags>): Promise<CommandOutcome> {
  const context = { client: await clientOf(flags), signal }
  const [templates, kinds] = await Promise.all([templatesOf(context), kindsOf(context)])
  return {
    json: { server: context.client.server, templates },
    async text() {
      const { tableOf } = await import('./table.ts')
      const rows = templates.map((template) => {
        const kind = kinds.find(({ name }) => name === template.template_type)
        const image = kind?.image_setting == null ? '' : (memberOf(template, kind.image_setting) ?? '')
        return [template.name, kind?.title ?? template.template_type, String(image), template.builtin ? 'yes' : '']
      })
      return tableOf(['NAME', 'KIND', 'IMAGE', 'BUILT IN'], rows)
    },
  }
}

/** `patchbay templates add FILE|IMAGE`: makes a node type of an image, which is pushed first if it is a file. */
export async function templatesAdd({
  args: [word = ''],
  flags,
  signal,
}: CommandInput<typeof templateAdding>): Promise<CommandOutcome> {
  const given = flags.set.map(pairOf)
  const context = { client: await clientOf(flags), signal }
  const isFile = (await stat(word).catch(() => undefined))?.isFile() === true
  const image = isFile
    ? (await pushFiles([word], context, { ...flags, name: undefined, force: false }))[0]
    : await storedImage(word, context, flags.kind)
  if (image === undefined) throw new Error('unreachable')
  const kind = kindNamed(image.kind, await kindsOf(context))
  const suggested = isFile ? suggestedType(image.image, await headOf(word)) : suggestedFor(kind.name, image.image)
  const fits = suggested?.kind === kind.name ? suggested : undefined
  const body: LabTemplateCreate = {
    ...(fits !== undefined && { category: fits.category, symbol: fits.symbol, ...fits.settings }),
    ...(kind.image_setting !== null && fits === undefined && { [kind.image_setting]: image.image }),
    ...settingsOf(given, kind),
    name: flags.name ?? fits?.name ?? basename(image.image),
    template_type: kind.name,
  }
  const made = await context.client.call('POST /v2/templates', { body, signal })
  return outcomeOf(made, kind, 'Added')
}

/** `patchbay templates set TEMPLATE KEY=VALUE...`: changes settings of a node type. */
export async function templatesSet({
  args: [word = '', ...pairs],
  flags,
  signal,
}: CommandInput<typeof serviceFlags>): Promise<CommandOutcome> {
  const given = pairs.map(pairOf)
  const context = { client: await clientOf(flags), signal }
  const template = templateNamed(word, await templatesOf(context), context)
  const kind = kindNamed(template.template_type, await kindsOf(context))
  const params = { template_id: template.template_id }
  const changed = await context.client.call('PUT /v2/templates/{template_id}', {
    params,
    body: settingsOf(given, kind),
    signal,
  })
  return outcomeOf(changed, kind, 'Changed')
}

/** `patchbay templates rm TEMPLATE...`: deletes node types. */
export async function templatesRm({ args, flags, signal }: CommandInput<typeof serviceFlags>): Promise<CommandOutcome> {
  const context = { client: await clientOf(flags), signal }
  const all = await templatesOf(context)
  const found = args.map((word) => templateNamed(word, all, context))
  for (const { template_id } of found)
    await context.client.call('DELETE /v2/templates/{template_id}', { params: { template_id }, signal })
  return {
    json: { deleted: found },
    async text() {
      const { shown } = await import('./table.ts')
      return shown(`Deleted ${found.map(({ name }) => name).join(', ')}`)
    },
  }
}

const outcomeOf = (template: LabTemplate, kind: LabKind, verb: string): CommandOutcome => ({
  json: template,
  async text() {
    const { shown } = await import('./table.ts')
    const settings = kind.first_settings.flatMap((name) => {
      const value = memberOf(template, name)
      return value == null || value === '' ? [] : `${name}=${String(value)}`
    })
    return shown(`${verb} ${template.name} (${[kind.title, ...settings].join(', ')})`)
  },
})

const templatesOf = ({ client, signal }: CommandContext): Promise<LabTemplate[]> =>
  client.call('GET /v2/templates', { signal })
const kindsOf = ({ client, signal }: CommandContext): Promise<LabKind[]> => client.call('GET /v2/kinds', { signal })

/** A setting of the nodes of a template. */
const memberOf = (template: LabTemplate, name: string): unknown => (template as Record<string, unknown>)[name]

/** CommandError 1. */
function templateNamed(word: string, all: readonly LabTemplate[], { client }: CommandContext): LabTemplate {
  const key = word.toLowerCase()
  const found = all.filter(({ template_id, name }) => template_id === key || name.toLowerCase() === key)
  const [one, ...others] = found
  if (others.length > 0)
    throw new CommandError(exits.failed, [
      {
        message: `${found.length} node types have the name ${JSON.stringify(word)}`,
        hint: `give an id: ${found.map(({ template_id }) => template_id).join(', ')}`,
      },
    ])
  if (one !== undefined) return one
  const names = all.map(({ name }) => name)
  const message = `there is no node type ${JSON.stringify(word)} on ${client.server}`
  throw notFound(message, word, names, '"patchbay templates ls" lists them')
}

function kindNamed(word: string, all: readonly LabKind[]): LabKind {
  const kind = all.find(({ name }) => name === word)
  if (kind === undefined) throw new CommandError(exits.failed, `this service has no nodes of kind ${word}`)
  return kind
}

async function storedImage(word: string, context: CommandContext, kind: string | undefined) {
  const found = (await imageFinder(context, kind))(word)
  return { image: found.path, kind: found.kind }
}

async function headOf(file: string): Promise<Uint8Array> {
  await using handle = await open(file)
  const { buffer, bytesRead } = await handle.read({ buffer: new Uint8Array(headBytes), position: 0 })
  return buffer.subarray(0, bytesRead)
}

/** CommandError 64. */
function pairOf(text: string): readonly [key: string, value: string] {
  const at = text.indexOf('=')
  if (at < 1) throw wrongArguments(`${JSON.stringify(text)}: expected KEY=VALUE, such as ram=1024`)
  return [text.slice(0, at), text.slice(at + 1)]
}

/** Members that every template has, beside the settings of its kind. */
const common = ['name', 'category', 'symbol', 'default_name_format', 'usage', 'compute_id', 'console_type']

/** Settings as their schema wants them. CommandError 64 for an unknown one, and for a value of another type. */
function settingsOf(pairs: readonly (readonly [string, string])[], kind: LabKind): Record<string, unknown> {
  const properties = (kind.settings.properties ?? {}) as Readonly<
    Record<string, { type?: string; anyOf?: { type?: string }[] }>
  >
  const known = [...Object.keys(properties), ...common]
  return Object.fromEntries(
    pairs.map(([key, value]) => {
      if (!known.includes(key))
        throw wrongArguments(`${key}: ${kind.title} has no such setting`, `its settings are ${known.join(', ')}`)
      const { type, anyOf } = properties[key] ?? {}
      const types = [type, ...(anyOf ?? []).map((member) => member.type)]
      return [key, typedValue(key, value, types)]
    }),
  )
}

function typedValue(key: string, text: string, types: readonly (string | undefined)[]): unknown {
  if (types.includes('boolean')) {
    if (text !== 'true' && text !== 'false')
      throw wrongArguments(`${key}: expected true or false, got ${JSON.stringify(text)}`)
    return text === 'true'
  }
  if (!types.includes('integer') && !types.includes('number')) return text
  const value = Number(text)
  if (text.trim() === '' || !Number.isFinite(value))
    throw wrongArguments(`${key}: expected a number, got ${JSON.stringify(text)}`)
  return value
}
