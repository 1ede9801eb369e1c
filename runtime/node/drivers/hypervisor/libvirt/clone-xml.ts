import { basename, join } from 'node:path'
import { conflict } from '../../../../../src/lib/errors/api-error.ts'
import { devicesOf, domainNameOf, interfacesOf, requireMachine } from './definition.ts'
import { macOfInterface } from './interfaces.ts'
import {
  append,
  child,
  childOrNew,
  children,
  descendant,
  documentOf,
  type Element,
  insert,
  parseXml,
  removeChildren,
  setAttributes,
  textOf,
  xmlText,
} from './xml.ts'

/** XML namespace of the metadata in the definition of a clone. */
const namespace = 'urn:patchbay:clone:1'

/** A disk that gets an overlay. */
export interface CloneDisk {
  /** Such as `vda`. */
  readonly device: string
  /** The base of the overlay. */
  readonly file: string
  readonly format: string
  readonly element: Element
}

/** The base of an overlay, and the time of its last write (ns; empty when unknown). */
export type CloneBase = { readonly device: string; readonly file: string; readonly written: string }

/** The metadata of a clone. */
export type CloneMark = { readonly directory: string; readonly source: string; readonly bases: readonly CloneBase[] }

export const domainOverlayName = (device: string): string => `${device}.qcow2`
export const domainNvramName = 'nvram.fd'

/** The metadata of a clone; undefined for a VM of the user. */
export function markOf(domain: Element): CloneMark | undefined {
  const mark = children(child(domain, 'metadata')).find((it) => it.namespaceURI === namespace)
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
  setAttributes(mark, { directory, source })
  for (const base of bases) {
    const element = document.createElementNS(namespace, 'patchbay:base')
    mark.appendChild(element)
    setAttributes(element, { ...base })
  }
}

/** The writable disks of a VM; 409 when a disk cannot have an overlay. */
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
  if (type !== 'file') throw refuse(`is not a file (${type})`)
  const source = child(element, 'source')
  const file = source?.getAttribute('file') ?? ''
  if (!/^[\w-]+$/.test(device) || !file.startsWith('/')) throw refuse('has no file')
  const special = children(source).find(({ nodeName }) => nodeName !== 'seclabel')
  if (special !== undefined) throw refuse(`is more than a file (${special.nodeName})`)
  return { device, file, format: child(element, 'driver')?.getAttribute('type') ?? 'raw', element }
}

/** Replaces disks by their overlays. The base is named here, because a client may change the header of the overlay. */
export function useOverlays(disks: readonly CloneDisk[], directory: string): void {
  for (const { device, file, format, element } of disks) {
    const [below] = children(element, 'backingStore')
    for (const name of ['backingStore', 'source']) removeChildren(element, name)
    childOrNew(element, 'driver').setAttribute('type', 'qcow2')
    const target = child(element, 'target') ?? null
    insert(element, 'source', { file: join(directory, domainOverlayName(device)) }, target)
    const base = insert(element, 'backingStore', { type: 'file' }, target)
    append(base, 'format', { type: format })
    append(base, 'source', { file })
    if (below !== undefined) base.appendChild(below)
  }
}

/** Changes all that must be unique on the host in a copied definition: name, UUID and MAC addresses. */
export function makeUnique(domain: Element, { uuid, name }: { readonly uuid: string; readonly name: string }): void {
  childOrNew(domain, 'name').textContent = name
  childOrNew(domain, 'uuid').textContent = uuid
  for (const generation of children(domain, 'genid')) generation.textContent = ''
  const system = children(domain, 'sysinfo').flatMap((it) => children(it, 'system'))
  for (const entry of system.flatMap((it) => children(it, 'entry'))) {
    // libvirt requires the same UUID there.
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

/** The file of the UEFI variables; 409 when they are not a file. */
export function nvramOf(domain: Element): { readonly element: Element; readonly file: string } | undefined {
  const element = descendant(domain, 'os', 'nvram')
  if (element === undefined) return undefined
  const type = element.getAttribute('type') ?? 'file'
  if (type !== 'file')
    throw conflict(`"${domainNameOf(domain)}" cannot be cloned: its UEFI variables are not a file (${type})`)
  return { element, file: child(element, 'source')?.getAttribute('file') ?? textOf(element) }
}

export function setNvram(element: Element, file: string): void {
  const source = child(element, 'source')
  if (source === undefined) element.textContent = file
  else source.setAttribute('file', file)
}

/** The definition of a clone whose directory was moved. */
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
  if (nvram !== undefined && isIn(mark.directory, nvram.file))
    setNvram(nvram.element, join(directory, basename(nvram.file)))
  setMark(domain, { ...mark, directory })
}

const isIn = (directory: string, file: string): boolean => join(directory, basename(file)) === file
