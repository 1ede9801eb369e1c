import { useSignal } from '@preact/signals'
import { Fault } from '../parts/fault.tsx'
import { mayEdit } from '../state/session.ts'
import type { Filters } from './impairment.ts'

interface FilterProps {
  readonly filters: Filters
  /** Resolves with why the service refuses it; empty: it is applied. */
  readonly onChange: (filters: Filters) => Promise<string>
}

/** The tcpdump expressions whose frames a link drops. The compute compiles them when they are applied, and says what is wrong. */
export function FrameFilter({ filters, onChange }: FilterProps) {
  const { bpf: [now = '', ...type] = [], ...others } = filters
  const typed = useSignal(now)
  const applied = useSignal(now)
  const fault = useSignal('')
  // Another window, or an undo, has changed it.
  if (applied.value !== now) {
    applied.value = now
    typed.value = now
    fault.value = ''
  }
  const isChanged = typed.value.trim() !== now
  const apply = async () => {
    const wanted = typed.value.trim()
    fault.value = await onChange(wanted === '' ? others : { ...others, bpf: [wanted, ...type] })
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
          placeholder="tcpdump expression, such as tcp port 80"
          aria-invalid={fault.value !== ''}
          disabled={!mayEdit()}
          value={typed.value}
          onInput={(event) => {
            typed.value = event.currentTarget.value
          }}
        />
        {isChanged && <button type="submit">Apply</button>}
      </div>
      <Fault text={fault.value} />
    </form>
  )
}
