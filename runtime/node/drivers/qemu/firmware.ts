import { constants, existsSync, lstatSync } from 'node:fs'
import { copyFile, readdir, readFile, realpath, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { requireImage } from '../../engine/images/qemu-img.ts'
import { withDiskErrors } from '../../engine/storage/disk.ts'
import { begins } from '../../engine/storage/file-head.ts'
import type { Firmware } from './drives.ts'

/** The UEFI variables of a node: boot entries and keys. */
const varsName = 'uefi_vars.fd'

/** A UEFI of the host, as its package describes it (docs/interop/firmware.json of QEMU). */
interface SystemUefi {
  readonly code: string
  readonly vars: string
  readonly targets: readonly { readonly architecture: string; readonly machines: readonly string[] }[]
  readonly features: readonly string[]
}

/** Directories of descriptions; the first has priority. */
const directories = ['/etc/qemu/firmware', '/usr/share/qemu/firmware']

/** The signature of a firmware volume, after the zero vector, the GUID and the length (UEFI PI specification, volume 3). */
const volumeMark = { at: 40, text: '_FVH' }
/** GUID of a volume with variables; a whole UEFI image begins with it. */
const varsVolume = { at: 16, hex: '8d2bf1ff96768b4ca9852747075b4f50' }

/**
 * How an image of a firmware is used. The code half of a UEFI becomes flash, with variables for the node if the host or the
 * directory of the image has a template. All other images, also a whole UEFI, are used as they are.
 */
export async function firmwareOf(image: string, nodeDirectory: string): Promise<Firmware> {
  requireImage(image)
  if (!(await isUefiCode(image))) return { type: 'bios', path: image }
  const vars = join(nodeDirectory, varsName)
  if (existsSync(vars)) return { type: 'uefi', code: image, vars }
  const template = await varsTemplate(image)
  if (template === undefined) return { type: 'uefi', code: image }
  await withDiskErrors(`Creating ${varsName}`, () => copyWhole(template, vars))
  return { type: 'uefi', code: image, vars }
}

/** The UEFIs of the host for a machine such as `pc-q35-7.2`. Those with Secure Boot, which needs signed systems, come last. */
export async function systemUefis(architecture: string, machine: string): Promise<readonly SystemUefi[]> {
  const fits = ({ targets }: SystemUefi) =>
    targets.some(
      (target) => target.architecture === architecture && target.machines.some((pattern) => matches(machine, pattern)),
    )
  const isSecure = ({ features }: SystemUefi) => Number(features.includes('secure-boot'))
  return (await described()).filter(fits).sort((a, b) => isSecure(a) - isSecure(b))
}

const isUefiCode = (path: string): Promise<boolean> =>
  begins(path, (head) => {
    const id = head.toString('hex', varsVolume.at, varsVolume.at + 16)
    const mark = head.toString('latin1', volumeMark.at, volumeMark.at + 4)
    return head.length === 64 && mark === volumeMark.text && id !== varsVolume.hex
  })

async function varsTemplate(image: string): Promise<string | undefined> {
  const real = await realpath(image)
  for (const { code, vars } of await described()) {
    const isSame = code === image || (await realpath(code).catch(() => undefined)) === real
    if (isSame && existsSync(vars)) return vars
  }
  // The names that distributions give the two halves.
  const name = basename(image)
  const sibling = join(dirname(image), name.replace('CODE', 'VARS').replace('code', 'vars'))
  // No links, because a link in a project could lead to any file of the host.
  return sibling !== image && lstatSync(sibling, { throwIfNoEntry: false })?.isFile() === true ? sibling : undefined
}

/** Copies a file atomically. */
async function copyWhole(from: string, to: string): Promise<void> {
  const temporary = `${to}.creating`
  try {
    // An existing file is removed and not written to, because it may be a link to any file of the host.
    await rm(temporary, { recursive: true, force: true })
    await copyFile(from, temporary, constants.COPYFILE_EXCL)
    await rename(temporary, to)
  } catch (error) {
    await rm(temporary, { recursive: true, force: true })
    throw error
  }
}

async function described(): Promise<SystemUefi[]> {
  const found: SystemUefi[] = []
  for (const directory of directories) {
    const names = await readdir(directory).catch(() => [])
    for (const name of names.filter((it) => it.endsWith('.json')).sort()) {
      const uefi = uefiIn(await readFile(join(directory, name), 'utf8').catch(() => ''))
      if (uefi !== undefined) found.push(uefi)
    }
  }
  return found
}

interface Description {
  readonly 'interface-types'?: readonly string[]
  readonly mapping?: {
    readonly executable?: { readonly filename?: string }
    readonly 'nvram-template'?: { readonly filename?: string }
  }
  readonly targets?: SystemUefi['targets']
  readonly features?: readonly string[]
}

/** Parses a description; undefined unless it is of a UEFI with two halves. */
function uefiIn(text: string): SystemUefi | undefined {
  try {
    const description = JSON.parse(text) as Description
    const code = description.mapping?.executable?.filename
    const vars = description.mapping?.['nvram-template']?.filename
    if (!description['interface-types']?.includes('uefi') || code === undefined || vars === undefined) return undefined
    return { code, vars, targets: description.targets ?? [], features: description.features ?? [] }
  } catch {
    return undefined
  }
}

/** Matches a pattern with * for any text. */
function matches(name: string, pattern: string): boolean {
  const parts = pattern.split('*').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${parts.join('.*')}$`).test(name)
}
