import { batch, computed, signal } from '@preact/signals'
import { wellFormed } from '../../../src/lib/text/escape.ts'

/** The screens about the service. */
const serviceScreens = ['images', 'computes', 'tokens', 'classes', 'doctor', 'settings'] as const
export type ServiceScreenName = (typeof serviceScreens)[number]

/** What the page shows, from the part of its address after `#`. */
export type Route =
  | { readonly screen: 'labs' | ServiceScreenName; readonly className?: string }
  /** `console`: the console of that node alone, in a window of its own. */
  | { readonly screen: 'lab'; readonly lab: string; readonly node?: string; readonly console?: boolean }

/** The token of the link of a student, which the page was opened by. It is in no address any more. */
export const linkToken = signal<string | undefined>(undefined)

/** Whether the page has left its screen for that link. Until the user has agreed to that, the screen stays. */
export const isLinkFollowed = signal(false)

/**
 * The part of the address after `#`. The token of `#/class/TOKEN` is taken out of it before anything is loaded or asked for: the address
 * is the one before again.
 */
function readHash(before = ''): string {
  const [, token] = /^#\/class\/(.+)/.exec(location.hash) ?? []
  linkToken.value = token
  isLinkFollowed.value = false
  if (token !== undefined) history.replaceState(null, '', before || '#/')
  return location.hash
}

const hash = signal(readHash())
/** Where one goes back to from a lab: the wall of a class from which it was opened, or all labs. */
export const labsPath = signal('#/')
addEventListener('hashchange', () => {
  const before = hash.value
  hash.value = readHash(before)
  if (!before.startsWith('#/labs/')) labsPath.value = before.startsWith('#/classes/') ? before : '#/'
})

/** Goes from the link of a student to another screen, which takes its place in the history. */
export function leaveLink(path: string): void {
  history.replaceState(null, '', path)
  batch(() => {
    hash.value = path
    forgetLink()
  })
}

/** Stays at the screen of the address. */
export function forgetLink(): void {
  batch(() => {
    linkToken.value = undefined
    isLinkFollowed.value = false
  })
}

export const route = computed<Route>(() => routeOf(hash.value))

/**
 * `#/labs/NAME`, `#/labs/NAME/nodes/NODE`, `#/labs/NAME/nodes/NODE/console`; `#/images` and the like, `#/classes/NAME`; everything else is
 * the list of labs.
 */
function routeOf(text: string): Route {
  const [, first, lab, nodes, node, last] = text.replace(/^#/, '').split('/').map(decoded)
  const service = serviceScreens.find((it) => it === first)
  if (service !== undefined) return { screen: service, ...(service === 'classes' && lab && { className: lab }) }
  if (first !== 'labs' || lab === undefined || lab === '') return { screen: 'labs' }
  if (nodes !== 'nodes' || node === undefined || node === '') return { screen: 'lab', lab }
  return { screen: 'lab', lab, node, ...(last === 'console' && { console: true }) }
}

export const labPath = (lab: string): string => `#/labs/${encodeURIComponent(wellFormed(lab))}`
export const classPath = (name: string): string => `#/classes/${encodeURIComponent(wellFormed(name))}`
export const consolePath = (lab: string, node: string): string =>
  `${labPath(lab)}/nodes/${encodeURIComponent(wellFormed(node))}/console`

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
