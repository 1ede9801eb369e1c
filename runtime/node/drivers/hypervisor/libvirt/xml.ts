import { createRequire } from 'node:module'
import type { Element, Node } from '@xmldom/xmldom'
import { conflict } from '../../../../../src/lib/errors/api-error.ts'

export type { Element } from '@xmldom/xmldom'

const load = createRequire(import.meta.url)
let loaded: typeof import('@xmldom/xmldom') | undefined

/** Loads the library at the first use, to keep the start of the service fast. */
function library(): typeof import('@xmldom/xmldom') {
  loaded ??= load('@xmldom/xmldom') as typeof import('@xmldom/xmldom')
  return loaded
}

/** The root element; 409 when the text is no XML. */
export function parseXml(text: string): Element {
  const onError = (_: string, message: string) => {
    throw conflict(`The description of the VM by libvirt is not XML: ${message}`)
  }
  const root = new (library().DOMParser)({ onError }).parseFromString(text, 'text/xml').documentElement
  if (root === null) throw conflict('The description of the VM by libvirt is not XML')
  return root
}

/** Throws on characters that XML does not allow. */
export const xmlText = (element: Element): string =>
  new (library().XMLSerializer)().serializeToString(element, { requireWellFormed: true })

/** The child elements, of one name if it is given; none of a missing parent. */
export function children(parent: Element | undefined, name?: string): Element[] {
  const elements: Element[] = []
  for (let node = parent?.firstChild ?? null; node !== null; node = node.nextSibling) {
    if (node.nodeType === node.ELEMENT_NODE && (name === undefined || node.nodeName === name))
      elements.push(node as Element)
  }
  return elements
}

export const child = (parent: Element | undefined, name: string): Element | undefined => children(parent, name)[0]

/** The first child of the first child. */
export const descendant = (parent: Element, name: string, inner: string): Element | undefined =>
  child(child(parent, name), inner)

/** The first child of that name; a missing one is created. */
export const childOrNew = (parent: Element, name: string): Element => child(parent, name) ?? append(parent, name)

type Attributes = Readonly<Record<string, string | number>>

/** Creates the last child. */
export const append = (parent: Element, name: string, attributes: Attributes = {}): Element =>
  insert(parent, name, attributes, null)

/** Creates a child before another node. */
export function insert(parent: Element, name: string, attributes: Attributes, before: Node | null): Element {
  const element = documentOf(parent).createElement(name)
  parent.insertBefore(element, before)
  setAttributes(element, attributes)
  return element
}

export function setAttributes(element: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value))
}

/** Removes all children of that name. */
export function removeChildren(parent: Element, name: string): void {
  for (const element of children(parent, name)) parent.removeChild(element)
}

export const textOf = (element: Element | undefined): string => element?.textContent?.trim() ?? ''

export function documentOf(element: Element) {
  const { ownerDocument } = element
  if (ownerDocument === null) throw new Error(`<${element.nodeName}> is in no document`)
  return ownerDocument
}
