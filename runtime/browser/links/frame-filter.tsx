import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { pause } from '../../../src/lib/async/pause.ts'
import { ErrorMessage } from '../parts/error-message.tsx'
import { mayEdit } from '../state/session.ts'
import type { LinkFilters } from './impairment.ts'

interface FilterProps {
  readonly filters: LinkFilters
  /** Resolves with why the link cannot have them; empty: it can. Rejects when the service cannot tell. */
  readonly onCheck: (filters: LinkFilters, signal: AbortSignal) => Promise<string>
  /** Resolves with why the service refuses it; empty: it is applied. */
  readonly onChange: (filters: LinkFilters) => Promise<string>
}

/** What a check has found, as it is shown. */
interface Found {
  readonly isRefused: boolean
  readonly text: string
}

const good: Found = { isRefused: false, text: 'Apply it to drop these frames.' }
const unchecked: Found = { isRefused: false, text: 'It cannot be checked here. Apply says whether it is right.' }

/** Time after the last key at which an expression is checked, ms. */
const checkMs = 400

/** The tcpdump expressions whose frames a link drops. The compute compiles what is typed, and says what is wrong before it is applied. */
export function FrameFilter({ filters, onCheck, onChange }: FilterProps) {
  const { bpf: [now = '', ...type] = [], ...others } = filters
  const typed = useSignal(now)
  const applied = useSignal(now)
  const failure = useSignal('')
  /** The result of the check of the typed expression; undefined: not yet known. */
  const found = useSignal<Found | undefined>(undefined)
  // Another window, or an undo, has changed it.
  if (applied.value !== now) {
    applied.value = now
    typed.value = now
    failure.value = ''
  }
  const wanted = typed.value.trim()
  const isChanged = wanted !== now
  useEffect(() => {
    found.value = undefined
    if (wanted === '' || !isChanged) return
    const over = new AbortController()
    const check = async (): Promise<Found> => {
      await pause(checkMs, over.signal)
      const reason = await onCheck({ bpf: [wanted, ...type] }, over.signal)
      return reason === '' ? good : { isRefused: true, text: reason }
    }
    void check()
      // A compute of an older version has no checks: the expression may be right.
      .catch(() => unchecked)
      .then((frames) => {
        if (!over.signal.aborted) found.value = frames
      })
    return () => over.abort()
  }, [wanted, isChanged])
  const apply = async () => {
    failure.value = await onChange(wanted === '' ? others : { ...others, bpf: [wanted, ...type] })
  }
  return (
    <form
      class="field"
      onSubmit={(event) => {
        event.preventDefault()
        if (isChanged) void apply()
      }}
    >
      <label for="frame-filter">Drop frames that match</label>
      <div class="row is-one">
        <input
          id="frame-filter"
          spellcheck={false}
          autocomplete="off"
          maxLength={4096}
          placeholder="Such as tcp port 80"
          aria-invalid={failure.value !== '' || found.value?.isRefused === true}
          disabled={!mayEdit()}
          value={typed.value}
          onInput={(event) => {
            typed.value = event.currentTarget.value
            failure.value = ''
          }}
        />
        {isChanged && <button type="submit">Apply</button>}
      </div>
      <div role="status">
        {failure.value === '' && found.value !== undefined && (
          <p class={found.value.isRefused ? 'reason' : 'help'} dir="auto">
            {found.value.text}
          </p>
        )}
      </div>
      <ErrorMessage text={failure.value} />
    </form>
  )
}
