import { basename, join } from 'node:path'
import { conflict } from '../../../../../src/errors/api-error.ts'
import { devicesOf, domainNameOf, interfacesOf, requireMachine } from './definition.ts'
import { macOfInterface } from './interfaces.ts'
import {
  append,
  child,
  childOrNew,
  children,
  documentOf,
  type Element,
  parseXml,
  removeChildren,
  setAttributes,
  textOf,
  xmlText,
} from './xml.ts'

/** Where our own words are in the definition of a clone. */
const namespace = 'urn:patchbay:clone:1'

/** A disk of which a clone has an overlay. */
export interface CloneDisk {
  /** `vda`. */
  readonly device: string
  /** What the overlay is made on. */
  readonly file: string
  readonly format: string
  readonly element: Element
}

/** What an overlay of a clone is made on, and when that was written last (ns; empty when it cannot be known). */
export interface CloneBase {
  readonly device: string
  readonly file: string
  readonly written: string
}

/** What a definition says of itself when it is that of a clone. */
export interface CloneMark {
  readonly directory: string
  readonly source: string
  readonly bases: readonly CloneBase[]
}

export const domainOverlayName = (device: string): string => `${device}.qcow2`
export const domainNvramName = 'nvram.fd'

/** The mark of a clone; undefined for a VM of the user. */
export function markOf(domain: Element): CloneMark | undefined {
  const metadata = child(domain, 'metadata')
  const mark = (metadata === undefined ? [] : children(metadata)).find((it) => it.namespaceURI === namespace)
  if (mark === undefined) return undefined
  return {
    directory: mark.getAttribute('directory') ?? '',
    source: mark.getAttribute('source') ?? '',
    bases: children(mark).map((it) => ({
      device: it.getAttribute('device') ?? '',
      file: it.getAttribute('file') ?? '',
      written: it.getAttribute('written') ?? '',
    })),
  }
}

export function setMark(domain: Element, { directory, source, bases }: CloneMark): void {
  const metadata = childOrNew(domain, 'metadata')
  for (const old of children(metadata)) if (old.namespaceURI === namespace) metadata.removeChild(old)
  const document = documentOf(domain)
  const mark = document.createElementNS(namespace, 'patchbay:clone')
  metadata.appendChild(mark)
  mark.setAttribute('directory', directory)
  mark.setAttribute('source', source)
  for (const base of bases) {
    const element = document.createElementNS(namespace, 'patchbay:base')
    mark.appendChild(element)
    setAttributes(element, { ...base })
  }
}

/** The disks of a VM that a clone must have overlays of; 409 when one cannot have any. */
export function disksToOverlay(domain: Element): CloneDisk[] {
  requireMachine(domain)
  return children(devicesOf(domain), 'disk').flatMap((element) => {
    const kind = element.getAttribute('device') ?? 'disk'
    if (kind === 'cdrom' || kind === 'floppy' || child(element, 'readonly') !== undefined) return []
    return [diskToOverlay(domain, element)]
  })
}

function diskToOverlay(domain: Element, element: Element): CloneDisk {
  const device = child(element, 'target')?.getAttribute('dev') ?? ''
  const refuse = (why: string) =>
    conflict(`"${domainNameOf(domain)}" cannot be cloned: its disk ${device} ${why}; set linked_clone to false`)
  const type = element.getAttribute('type') ?? 'file'
  if (type !== 'file') throw refuse(`is no file (${type})`)
  const source = child(element, 'source')
  const file = source?.getAttribute('file') ?? ''
  if (!/^[\w-]+$/.test(device) || !file.startsWith('/')) throw refuse('has no file')
  const special = (source === undefined ? [] : children(source)).find(({ nodeName }) => nodeName !== 'seclabel')
  if (special !== undefined) throw refuse(`is more than a file (${special.nodeName})`)
  return { device, file, format: child(element, 'driver')?.getAttribute('type') ?? 'raw', element }
}

/**
 * Puts the overlays of a clone in the place of its disks. What they are on is said here, too: what an overlay itself says of that
 * could be written by whoever can write it.
 */
export function useOverlays(disks: readonly CloneDisk[], directory: string): void {
  for (const { device, file, format, element } of disks) {
    const [below] = children(element, 'backingStore')
    for (const name of ['backingStore', 'source']) removeChildren(element, name)
    childOrNew(element, 'driver').setAttribute('type', 'qcow2')
    const target = child(element, 'target') ?? null
    const source = documentOf(element).createElement('source')
    source.setAttribute('file', join(directory, domainOverlayName(device)))
    element.insertBefore(source, target)
    const base = documentOf(element).createElement('backingStore')
    base.setAttribute('type', 'file')
    append(base, 'format', { type: format })
    append(base, 'source', { file })
    if (below !== undefined) base.appendChild(below)
    element.insertBefore(base, target)
  }
}

/** Makes the definition of a VM that of another one: what must be unique on the host is its own. */
export function becomeOther(domain: Element, { uuid, name }: { readonly uuid: string; readonly name: string }): void {
  childOrNew(domain, 'name').textContent = name
  childOrNew(domain, 'uuid').textContent = uuid
  for (const generation of children(domain, 'genid')) generation.textContent = ''
  const system = children(domain, 'sysinfo').flatMap((it) => children(it, 'system'))
  for (const entry of system.flatMap((it) => children(it, 'entry'))) {
    // libvirt wants the same there.
    if (entry.getAttribute('name') === 'uuid') entry.textContent = uuid
  }
  interfacesOf(domain).forEach((adapter, index) => {
    childOrNew(adapter, 'mac').setAttribute('address', macOfInterface(uuid, index))
  })
  for (const disk of children(devicesOf(domain), 'disk')) {
    const isFloppy = disk.getAttribute('device') === 'floppy'
    if (isFloppy && child(disk, 'readonly') === undefined) append(disk, 'readonly')
  }
}

/** The file of its UEFI's variables, if it has one; 409 when that is no file. */
export function nvramOf(domain: Element): { readonly element: Element; readonly file: string } | undefined {
  const element = child(domain, 'os') && child(child(domain, 'os') as Element, 'nvram')
  if (element === undefined) return undefined
  const type = element.getAttribute('type') ?? 'file'
  if (type !== 'file')
    throw conflict(`"${domainNameOf(domain)}" cannot be cloned: its UEFI variables are no file (${type})`)
  return { element, file: child(element, 'source')?.getAttribute('file') ?? textOf(element) }
}

export function setNvram(element: Element, file: string): void {
  const source = child(element, 'source')
  if (source === undefined) element.textContent = file
  else source.setAttribute('file', file)
}

/** What libvirt says of a clone, with its files where they are now. */
export function inDirectory(xml: string, directory: string): string {
  const domain = parseXml(xml)
  const mark = markOf(domain)
  if (mark !== undefined) moveClone(domain, mark, directory)
  return xmlText(domain)
}

function moveClone(domain: Element, mark: CloneMark, directory: string): void {
  for (const disk of children(devicesOf(domain), 'disk')) {
    const source = child(disk, 'source')
    const file = source?.getAttribute('file')
    if (file && isIn(mark.directory, file)) source?.setAttribute('file', join(directory, basename(file)))
  }
  const nvram = nvramOf(domain)
  if (nvram !== undefined && isIn(mark.directory, nvram.file)) {
    setNvram(nvram.element, join(directory, basename(nvram.file)))
  }
  setMark(domain, { ...mark, directory })
}

const isIn = (directory: string, file: string): boolean => join(directory, basename(file)) === file
