import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { symbolShapes } from '../../../src/model/lab/symbol-shapes.ts'
import { client } from '../state/client.ts'
import { notifyError } from '../state/notices.ts'
import { SymbolPicture } from './symbols.tsx'

/** The pictures of all symbols, to choose one: those that are built in, and those of users. */
export function SymbolChoice({ chosen, onChoose }: { chosen: string; onChoose: (symbol: string) => void }) {
  const own = useSignal<readonly string[]>([])
  useEffect(() => {
    client
      .call('GET /v2/symbols')
      .then((all) => {
        own.value = all.flatMap(({ symbol_id, builtin }) => (builtin ? [] : symbol_id))
      })
      .catch(notifyError)
  }, [])
  const names = new Set([...Object.keys(symbolShapes), ...own.value, ...(chosen === '' ? [] : [chosen])])
  return (
    <ul class="symbol-choice" aria-label="Symbols">
      {[...names].map((name) => (
        <li key={name}>
          <button type="button" aria-pressed={name === chosen} onClick={() => onChoose(name)}>
            <SymbolPicture name={name} />
            <span>{name.replaceAll('_', ' ')}</span>
          </button>
        </li>
      ))}
    </ul>
  )
}
