import { constants, existsSync, lstatSync } from 'node:fs'
import { copyFile, open, readdir, readFile, realpath, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { withDiskErrors } from '../../storage/disk.ts'
import type { Firmware } from './drives.ts'
import { requireImage } from './qemu-img.ts'

/** The variables of a UEFI, in the directory of the node: its boot entries and keys. */
export const varsName = 'uefi_vars.fd'

/** A UEFI of the host, as its package describes it (firmware.json of QEMU). */
export interface SystemUefi {
  readonly code: string
  readonly vars: string
  readonly targets: readonly { readonly architecture: string; readonly machines: readonly string[] }[]
  readonly features: readonly string[]
}

/** Where the host has descriptions; those of /etc come first. */
const directories = ['/etc/qemu/firmware', '/usr/share/qemu/firmware']

/** A firmware volume has this mark after a zero vector, its own id and its length. */
const volumeMark = { at: 40, text: '_FVH' }
/** Id of the volume with the variables, as it is in the file; a whole UEFI begins with it. */
const varsVolume = { at: 16, hex: '8d2bf1ff96768b4ca9852747075b4f50' }

/**
 * How an image of a firmware is used. The code half of a UEFI becomes flash, with variables of the node's own when the host
 * or the directory of the image has a template of them; everything else, a whole UEFI too, is used as it is.
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

/** The UEFIs of the host for a machine such as `pc-q35-7.2`, those without Secure Boot first: it wants signed systems. */
export async function systemUefis(architecture: string, machine: string): Promise<readonly SystemUefi[]> {
  const fits = ({ targets }: SystemUefi) =>
    targets.some((it) => it.architecture === architecture && it.machines.some((pattern) => matches(machine, pattern)))
  const isSecure = ({ features }: SystemUefi) => Number(features.includes('secure-boot'))
  return (await described()).filter(fits).sort((a, b) => isSecure(a) - isSecure(b))
}

async function isUefiCode(path: string): Promise<boolean> {
  const file = await open(path, 'r')
  try {
    const head = Buffer.alloc(64)
    const { bytesRead } = await file.read(head, 0, head.length, 0)
    const id = head.toString('hex', varsVolume.at, varsVolume.at + 16)
    const mark = head.toString('latin1', volumeMark.at, volumeMark.at + 4)
    return bytesRead === head.length && mark === volumeMark.text && id !== varsVolume.hex
  } finally {
    await file.close()
  }
}

async function varsTemplate(image: string): Promise<string | undefined> {
  const real = await realpath(image)
  for (const { code, vars } of await described()) {
    const isSame = code === image || (await realpath(code).catch(() => undefined)) === real
    if (isSame && existsSync(vars)) return vars
  }
  // As packages name the two halves.
  const name = basename(image)
  const sibling = join(dirname(image), name.replace('CODE', 'VARS').replace('code', 'vars'))
  // In a project a link may lead to any file of the host.
  return sibling !== image && lstatSync(sibling, { throwIfNoEntry: false })?.isFile() === true ? sibling : undefined
}

/** Half a copy would be a firmware that does not start. */
async function copyWhole(from: string, to: string): Promise<void> {
  const temporary = `${to}.creating`
  try {
    // What was left there, or put there by a guest that broke out, is not written to: a link may lead to any file of the host.
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

/** Undefined for what is not a UEFI of two halves, or cannot be read. */
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

/** Patterns have a * for any text. */
function matches(name: string, pattern: string): boolean {
  const parts = pattern.split('*').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${parts.join('.*')}$`).test(name)
}
