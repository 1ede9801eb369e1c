import { createRequire } from 'node:module'
import type { Element } from '@xmldom/xmldom'
import { conflict } from '../../../../../src/errors/api-error.ts'

export type { Element } from '@xmldom/xmldom'

const load = createRequire(import.meta.url)
let loaded: typeof import('@xmldom/xmldom') | undefined

/** The library is loaded when the first VM of libvirt is looked at: it would be a part of every start of the service. */
function library(): typeof import('@xmldom/xmldom') {
  loaded ??= load('@xmldom/xmldom') as typeof import('@xmldom/xmldom')
  return loaded
}

/** The outermost element; 409 when the text is no XML. */
export function parseXml(text: string): Element {
  const onError = (_: string, message: string) => {
    throw conflict(`What libvirt says of the VM is not XML: ${message}`)
  }
  const root = new (library().DOMParser)({ onError }).parseFromString(text, 'text/xml').documentElement
  if (root === null) throw conflict('What libvirt says of the VM is not XML')
  return root
}

/** Throws on characters that XML cannot have. */
export function xmlText(element: Element): string {
  return new (library().XMLSerializer)().serializeToString(element, { requireWellFormed: true })
}

/** The elements in it, in order; those of one name when that is given. */
export function children(parent: Element, name?: string): Element[] {
  const elements: Element[] = []
  for (let node = parent.firstChild; node !== null; node = node.nextSibling) {
    if (node.nodeType === node.ELEMENT_NODE && (name === undefined || node.nodeName === name)) {
      elements.push(node as Element)
    }
  }
  return elements
}

export const child = (parent: Element, name: string): Element | undefined => children(parent, name)[0]

/** The first of the name; it is made when there is none. */
export const childOrNew = (parent: Element, name: string): Element => child(parent, name) ?? append(parent, name)

export type Attributes = Readonly<Record<string, string | number>>

/** A new element at the end. */
export function append(parent: Element, name: string, attributes: Attributes = {}, text?: string): Element {
  const element = documentOf(parent).createElement(name)
  parent.appendChild(element)
  setAttributes(element, attributes)
  if (text !== undefined) element.textContent = text
  return element
}

export function setAttributes(element: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value))
}

/** Takes out all of the name. */
export function removeChildren(parent: Element, name: string): void {
  for (const element of children(parent, name)) parent.removeChild(element)
}

export const textOf = (element: Element | undefined): string => element?.textContent?.trim() ?? ''

export function documentOf(element: Element) {
  const { ownerDocument } = element
  if (ownerDocument === null) throw new Error(`<${element.nodeName}> is in no document`)
  return ownerDocument
}
