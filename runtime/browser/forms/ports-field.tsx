import { useRef } from 'preact/hooks'
import { IconButton } from '../parts/icon-button.tsx'
import type { FormField } from './fields.ts'
import { newPortRow, type PortRow, withOwnPorts } from './port-ranges.ts'

interface PortsProps {
  readonly field: Extract<FormField, { kind: 'ports' }>
  /** Its rows as JSON. */
  readonly text: string
  readonly isDisabled: boolean
  readonly onType: (text: string) => void
}

/** How modes of ports are called in front of people. */
const modeNames: Readonly<Record<string, string>> = { access: 'access', dot1q: 'trunk (802.1Q)', qinq: 'QinQ' }

/** The ports of a switch: a row for all with equal settings. */
export function PortsField({ field: { description, modes, ethertypes }, text, isDisabled, onType }: PortsProps) {
  const rows = JSON.parse(text) as PortRow[]
  const give = (next: readonly PortRow[]) => onType(JSON.stringify(next))
  const change = (index: number, changes: Partial<PortRow>) =>
    give(rows.map((row, at) => (at === index ? { ...row, ...changes } : row)))
  const isNewWanted = useRef(false)
  /** Moves the focus into a row that was just added. */
  const enterNew = (element: HTMLInputElement | null) => {
    if (element === null || !isNewWanted.current) return
    isNewWanted.current = false
    element.focus()
  }
  const hasOuterTags = rows.some(({ mode }) => mode === 'qinq')
  return (
    <fieldset class="field table-field" disabled={isDisabled}>
      <legend title={description}>VLANs</legend>
      <table class="ports-table">
        <thead>
          <tr>
            <th>Port</th>
            <th>Mode</th>
            <th>VLAN</th>
            {hasOuterTags && <th>EtherType</th>}
            <td />
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              <td>
                <input
                  type="text"
                  ref={index === rows.length - 1 ? enterNew : null}
                  required
                  spellcheck={false}
                  autocomplete="off"
                  placeholder="e0-e3"
                  aria-label={`Ports of row ${index + 1}`}
                  title={row.name || 'Such as e0-e3, e7'}
                  value={row.ports}
                  onInput={(event) => change(index, { ports: event.currentTarget.value })}
                  // Not while it is typed: e1 is on the way to e12.
                  onChange={() => give(withOwnPorts(rows, row))}
                />
              </td>
              <td>
                <select
                  aria-label={`Mode of row ${index + 1}`}
                  value={row.mode}
                  onChange={(event) => change(index, { mode: event.currentTarget.value })}
                >
                  {modes.map((mode) => (
                    <option key={mode} value={mode}>
                      {modeNames[mode] ?? mode}
                    </option>
                  ))}
                </select>
              </td>
              <td>
                <input
                  type="number"
                  required
                  min={1}
                  max={4094}
                  aria-label={`VLAN of row ${index + 1}`}
                  value={row.vlan}
                  onInput={(event) => change(index, { vlan: event.currentTarget.value })}
                />
              </td>
              {hasOuterTags && (
                <td>
                  {row.mode === 'qinq' && (
                    <select
                      aria-label={`EtherType of row ${index + 1}`}
                      value={row.ethertype}
                      onChange={(event) => change(index, { ethertype: event.currentTarget.value })}
                    >
                      {ethertypes.map((it) => (
                        <option key={it} value={it}>
                          {it === '' ? '0x8100' : it}
                        </option>
                      ))}
                    </select>
                  )}
                </td>
              )}
              <td>
                {!isDisabled && (
                  <IconButton
                    icon="close"
                    title={`Remove row ${index + 1}`}
                    onClick={() => give(rows.toSpliced(index, 1))}
                  />
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {!isDisabled && (
        <button
          type="button"
          onClick={() => {
            isNewWanted.current = true
            give([...rows, newPortRow])
          }}
        >
          Add a row of ports
        </button>
      )}
      <p class="help">
        Ports that are equal are one row, such as e0-e3. A row takes its ports from the others; a number that no row has
        is a new port. A trunk passes all VLANs; its own is untagged.
      </p>
    </fieldset>
  )
}
