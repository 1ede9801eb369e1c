import { computed, signal } from '@preact/signals'
import { wellFormed } from '../../../src/lib/text/escape.ts'

/** The screens about the service. */
const serviceScreens = ['images', 'computes', 'tokens', 'doctor', 'settings'] as const
export type ServiceScreenName = (typeof serviceScreens)[number]

/** What the page shows, from the part of its address after `#`. */
export type Route =
  | { readonly screen: 'labs' | ServiceScreenName }
  /** `console`: the console of that node alone, in a window of its own. */
  | { readonly screen: 'lab'; readonly lab: string; readonly node?: string; readonly console?: boolean }

const hash = signal(location.hash)
addEventListener('hashchange', () => {
  hash.value = location.hash
})

export const route = computed<Route>(() => routeOf(hash.value))

/** `#/labs/NAME`, `#/labs/NAME/nodes/NODE`, `#/labs/NAME/nodes/NODE/console`; `#/images` and the like; everything else is the list of labs. */
function routeOf(text: string): Route {
  const [, first, lab, nodes, node, last] = text.replace(/^#/, '').split('/').map(decoded)
  const service = serviceScreens.find((it) => it === first)
  if (service !== undefined) return { screen: service }
  if (first !== 'labs' || lab === undefined || lab === '') return { screen: 'labs' }
  if (nodes !== 'nodes' || node === undefined || node === '') return { screen: 'lab', lab }
  return { screen: 'lab', lab, node, ...(last === 'console' && { console: true }) }
}

export const labPath = (lab: string): string => `#/labs/${encodeURIComponent(wellFormed(lab))}`
export const consolePath = (lab: string, node: string): string =>
  `${labPath(lab)}/nodes/${encodeURIComponent(wellFormed(node))}/console`

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
