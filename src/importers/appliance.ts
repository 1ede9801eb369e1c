import { Check } from '@sinclair/typebox/value'
import type { Fields } from '../labfile/text.ts'
import type { KindDescriptor } from '../model/kinds/kind.ts'
import { kindOf } from '../model/kinds/node.ts'
import { kindOfWord } from '../model/lab/archive-words.ts'
import { symbolNamed } from '../model/lab/built-in-symbols.ts'
import { isKnownKind, mapFields } from '../model/lab/node.ts'
import type { LabTemplateCreate } from '../model/lab/template.ts'
import { consoleOptions } from './console-options.ts'
import { dockerContainer } from './gns3-containers.ts'
import { type LeftOut, type Part, quoted, type Source } from './source.ts'

/** An image that nodes of an appliance start from. */
export interface ApplianceImage {
  /** The setting that names it, such as `hda_disk_image`. */
  readonly setting: string
  readonly filename: string
  /** In lower case; undefined when the appliance has none. */
  readonly md5: string | undefined
  /** Bytes. */
  readonly size: number | undefined
  /** Where the vendor has it. */
  readonly from: string | undefined
}

/** An appliance as a template, without its images. */
export interface Appliance {
  readonly kind: string
  readonly template: LabTemplateCreate
  /** The chosen version, and all of them; the appliance may have none. */
  readonly version: string | undefined
  readonly versions: readonly string[]
  readonly images: readonly ApplianceImage[]
  readonly leftOut: readonly LeftOut[]
}

/** The registry has documents of these versions; version 8 has named sets of settings. */
const newest = 8
const emulators = ['qemu', 'dynamips', 'iou', 'docker', 'virtualbox', 'vmware', 'vpcs']
const descriptive = [
  ...['appliance_id', 'description', 'vendor_name', 'vendor_url', 'vendor_logo_url', 'documentation_url'],
  ...[
    'product_name',
    'product_url',
    'status',
    'availability',
    'maintainer',
    'maintainer_email',
    'images',
    'registry_version',
  ],
]

/**
 * An appliance of GNS3 (*.gns3a) as a template. `version`: default is the first one. 400 for a document that is none, for an unknown
 * version, and for an emulator for which there is no kind. The image of a docker appliance is an archive.
 */
export function importAppliance(source: Source, { version }: { version?: string | undefined } = {}): Appliance {
  const { root } = source
  const registry = root.get('registry_version').optionalNumber() ?? 3
  if (registry > newest) throw root.get('registry_version').error(`expected at most ${newest}`)
  const chosen = versionOf(root, version)
  const { type, part, settings } = settingsOf(root, chosen)
  const kind = kindOfWord(type)
  if (!isKnownKind(kind)) throw part.error(`there is no kind ${quoted(type)}`)
  const name = root.get('name').text()
  const { properties, images } =
    type === 'docker'
      ? containerOf(settings, part)
      : {
          properties: propertiesOf(settings, kindOf(kind) as KindDescriptor),
          images: imagesOf(root, kind, chosen),
        }
  const usage = [root.get('usage'), chosen?.get('usage')]
    .map((it) => it?.optionalText() ?? '')
    .filter((it) => it !== '')
  const symbol = root.get('symbol').optionalText()
  if (symbol !== undefined && symbolNamed(symbol) === undefined)
    root.get('symbol').leaveOut('is not imported: upload it as a symbol')
  const template: LabTemplateCreate = {
    name: chosen === undefined ? name : `${name} ${chosen.get('name').text()}`.slice(0, 255),
    template_type: kind,
    category: categoryOf(root.get('category')),
    ...(symbol !== undefined && symbolNamed(symbol) !== undefined && { symbol }),
    ...(usage.length > 0 && { usage: usage.join('\n').slice(0, 65536) }),
    ...mapFieldsOf(root),
    ...properties,
  }
  for (const key of [...descriptive, ...emulators, 'settings', 'versions']) root.get(key)
  root.leaveOutUnread(() => 'is not imported')
  return {
    kind,
    template,
    version: chosen?.get('name').text(),
    versions: root
      .get('versions')
      .items()
      .map((it) => it.get('name').text()),
    images,
    leftOut: source.leftOut,
  }
}

function versionOf(root: Part, wanted: string | undefined): Part | undefined {
  const versions = root.get('versions').items()
  if (wanted === undefined) return versions[0]
  const found = versions.find((it) => it.get('name').text() === wanted)
  if (found !== undefined) return found
  const names = versions.map((it) => it.get('name').text()).join(', ')
  throw root
    .get('versions')
    .error(`there is no version ${quoted(wanted)}${names === '' ? '' : `, expected one of ${names}`}`)
}

/** The settings of an appliance, the first ones win: of its emulator, or in version 8 of the set that the version names. */
function settingsOf(root: Part, version: Part | undefined): { type: string; part: Part; settings: readonly Part[] } {
  const sets = root.get('settings').items()
  if (sets.length === 0) {
    const emulator = emulators.find((it) => !root.get(it).isAbsent)
    if (emulator === undefined) throw root.error('expected settings of an emulator, such as "qemu"')
    const own = root.get(emulator)
    return { type: emulator, part: own, settings: [own] }
  }
  const named = version?.get('settings').optionalText()
  const base = sets.find((it) => it.get('default').value === true)
  const set = named === undefined ? (base ?? sets[0]) : sets.find((it) => it.get('name').optionalText() === named)
  if (set === undefined) throw root.get('settings').error(`there are no settings ${quoted(named)}`)
  const inherits = base !== undefined && base !== set && set.get('inherit_default_properties').value !== false
  const both = inherits ? [set, base] : [set]
  const part = both.map((it) => it.get('template_type')).find((it) => !it.isAbsent)
  if (part === undefined) throw set.error('template_type is missing')
  return { type: part.text(), part, settings: both.map((it) => it.get('template_properties')) }
}

/** Other names of properties. */
const renamed: Readonly<Record<string, string>> = { arch: 'platform' }

/** The settings that nodes of the kind have. */
function propertiesOf(settings: readonly Part[], kind: KindDescriptor): Fields {
  const fields: Fields = {}
  for (const part of settings)
    for (const [word, it] of part.entries()) {
      const key = renamed[word] ?? word
      const schema = kind.create.properties[key]
      if (it.isAbsent || key in fields || it.value === '') continue
      if (schema === undefined) it.leaveOut(`is not imported: a ${kind.noun} has no such setting`)
      else if (key === 'options') Object.assign(fields, consoleOptions(it))
      else if (Check(schema, it.value)) fields[key] = it.value
      else it.leaveOut(`is not imported: a ${kind.noun} cannot have ${quoted(it.value)}`)
    }
  return fields
}

/** A docker appliance: its image is that of a registry, whatever the version. */
function containerOf(settings: readonly Part[], part: Part): { properties: Fields; images: ApplianceImage[] } {
  const all = new Map([...settings].reverse().flatMap((it) => it.entries()))
  const read = dockerContainer(all, { links: 0 })
  if (read === undefined) throw part.error('image is missing')
  const { symbol: _, image, ...properties } = read.fields
  if (read.hint !== undefined) all.get('image')?.change(read.hint)
  const none = { md5: undefined, size: undefined, from: undefined }
  return { properties, images: [{ setting: 'image', filename: String(image), ...none }] }
}

/** Settings of the map, which are beside those of the emulator. */
function mapFieldsOf(root: Part): Fields {
  const fields: Fields = {}
  for (const key of ['port_name_format', 'port_segment_size', 'first_port_name', 'linked_clone', 'custom_adapters']) {
    const part = root.get(key)
    if (part.isAbsent) continue
    const schema = (mapFields as Readonly<Record<string, Parameters<typeof Check>[0]>>)[key]
    if (schema === undefined || Check(schema, part.value)) fields[key] = part.value
    else part.leaveOut(`is not imported: ${quoted(part.value)} is not possible here`)
  }
  return fields
}

const categories = ['router', 'switch', 'guest', 'firewall']
function categoryOf(part: Part): string {
  const word = part.optionalText() ?? 'guest'
  return word === 'multilayer_switch' ? 'switch' : categories.includes(word) ? word : 'guest'
}

/** The name of an image, which may be below one directory: `router.ova/disk1.vmdk` is a disk of an archive of a VM. */
const isImageName = (name: string): boolean => /^(?:[^./\\][^/\\]{0,254}\/)?[^./\\][^/\\]{0,254}$/.test(name)

/** Most images of a version: no kind of node has more than 20 settings that name one. */
const maxImages = 64

/** The images of a version, with what the list of images of the appliance says of each. */
function imagesOf(root: Part, kind: string, version: Part | undefined): ApplianceImage[] {
  const known = new Map<string | undefined, Part>()
  for (const it of root.get('images').items()) {
    const filename = it.get('filename').optionalText()
    if (!known.has(filename)) known.set(filename, it)
  }
  const images = version?.get('images')
  const entries = images?.entries() ?? []
  if (images !== undefined && entries.length > maxImages)
    throw images.error(`expected at most ${maxImages} images, got ${entries.length}`)
  return entries.map(([word, part]) => {
    const filename = part.text()
    if (!isImageName(filename)) throw part.error(`expected the name of a file, got ${quoted(filename)}`)
    const found = known.get(filename)
    const sum = found?.get('md5sum').optionalText() ?? found?.get('checksum').optionalText()
    const from = found?.get('direct_download_url').optionalText() ?? found?.get('download_url').optionalText()
    return {
      setting: kind === 'iou' && word === 'image' ? 'path' : word,
      filename,
      md5: sum !== undefined && /^[0-9a-f]{32}$/i.test(sum) ? sum.toLowerCase() : undefined,
      size: found?.get('filesize').optionalNumber(),
      from,
    }
  })
}
