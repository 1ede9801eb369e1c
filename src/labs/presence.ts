import { onAbort } from '../lib/async/abort.ts'
import { tooMany } from '../lib/errors/api-error.ts'
import { compareText } from '../lib/text/compare-text.ts'
import type { Identity } from '../model/access/identity.ts'
import type { LabPresence, LabPresenceInput } from '../model/lab/presence.ts'
import type { Lab } from './lab/lab.ts'

/** How long a selection is shown, ms. A client repeats it within that time. */
const lifeMs = 15_000
const maxPresent = 64

interface Present {
  shown: LabPresence
  timer: ReturnType<typeof setTimeout>
}

const presentIn = new WeakMap<Lab, Map<string, Present>>()

/**
 * Shows the selection of a client to the others at a lab, for 15 s. The result: all selections; 429 above `maxPresent`. `onShown`: called each
 * time, and with true when somebody comes or goes. Without credentials a client is who it says.
 */
export function showPresence(
  lab: Lab,
  identity: Pick<Identity, 'name' | 'key'>,
  { selection, client, name: given }: LabPresenceInput,
  onShown: (isChange: boolean) => void,
): LabPresence[] {
  const { key } = identity
  const name = key === '' ? (given ?? identity.name) : identity.name
  const all = presentIn.get(lab) ?? new Map<string, Present>()
  if (!presentIn.has(lab)) {
    presentIn.set(lab, all)
    onAbort(lab.closing.signal, () => {
      for (const { timer } of all.values()) clearTimeout(timer)
      all.clear()
      lab.present = []
    })
  }
  const id = `${client ?? ''}/${key}`
  const known = all.get(id)
  const listNames = () => {
    lab.present = [...new Set([...all.values()].map((it) => it.shown.name))].sort(compareText)
    onShown(true)
  }
  if (known === undefined && all.size >= maxPresent)
    throw tooMany(`${maxPresent} other clients are already using the project; wait until one leaves`)
  clearTimeout(known?.timer)
  const shown: LabPresence = { name, client: client ?? '', selection, present: true }
  const timer = setTimeout(() => {
    all.delete(id)
    listNames()
    lab.emit({ action: 'presence', event: { ...shown, selection: [], present: false } })
  }, lifeMs)
  all.set(id, { shown, timer })
  if (known?.shown.name !== name) listNames()
  else onShown(false)
  if (JSON.stringify(known?.shown) !== JSON.stringify(shown)) lab.emit({ action: 'presence', event: shown })
  return [...all.values()].map((it) => it.shown)
}
