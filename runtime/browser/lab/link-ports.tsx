import { useSignal } from '@preact/signals'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { LabNode } from '../../../src/client/patchbay.ts'
import type { LabWindow, NewLink } from '../editing/lab-window.ts'
import type { Point } from '../map/geometry.ts'
import { fittingPorts, type Port, portsBetween } from '../map/ports.ts'
import { stepOf, useFloating } from '../parts/floating.ts'

interface LinkPortsProps {
  readonly window: LabWindow
  readonly link: NewLink
}

/** The free ports of the node at which a link ends, and of the other one where no port of it was chosen. */
export function LinkPorts({ window: lab, link }: LinkPortsProps) {
  const { nodes, links } = lab.editor.store
  const [a, b] = [nodes.get(link.from), nodes.get(link.to ?? '')]
  const found = a && b && portsBetween(a, b, links.values(), link.port)
  const ports = found === undefined || 'reason' in found ? undefined : found
  useLayoutEffect(() => {
    // Somebody else has deleted a node, or taken the last port.
    if (ports === undefined) lab.newLink.value = undefined
  }, [ports === undefined])
  if (a === undefined || b === undefined || ports === undefined) return null
  return <List {...{ lab, a, b, at: link.at ?? origin, ...ports }} />
}

const origin: Point = { x: 0, y: 0 }

interface ListProps {
  readonly lab: LabWindow
  readonly a: LabNode
  readonly b: LabNode
  readonly at: Point
  readonly from: readonly Port[]
  readonly to: readonly Port[]
}

function List({ lab, a, b, at, from, to }: ListProps) {
  const element = useRef<HTMLDivElement>(null)
  const chosen = useSignal(from[0]?.name)
  const close = () => {
    lab.newLink.value = undefined
  }
  const goBack = useFloating(element, at, close)
  const mine = from.find(({ name }) => name === chosen.value) ?? from[0]
  const theirs = fittingPorts(mine, to)
  return (
    <div
      ref={element}
      class="context-menu link-ports"
      role="dialog"
      aria-label={`Ports of the link from ${a.name} to ${b.name}`}
      onKeyDown={(event) => {
        event.stopPropagation()
        if (event.key === 'Escape') {
          close()
          goBack()
        }
        const buttons = [...event.currentTarget.querySelectorAll('button')]
        const now = buttons.indexOf(document.activeElement as HTMLButtonElement)
        const next = now < 0 ? undefined : stepOf(event.key, now)
        if (next === undefined) return
        event.preventDefault()
        buttons.at(next % buttons.length)?.focus()
      }}
      onContextMenu={(event) => event.preventDefault()}
    >
      <p>
        <bdi>{a.name}</bdi>{' '}
        {from.length === 1 ? (
          mine?.name
        ) : (
          <select
            aria-label={`Port of ${a.name}`}
            value={mine?.name}
            onChange={(event) => {
              chosen.value = event.currentTarget.value
            }}
          >
            {from.map(({ name }) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        )}{' '}
        to <bdi>{b.name}</bdi>
      </p>
      {theirs.map((port) => (
        <button
          key={port.name}
          type="button"
          onClick={() => {
            lab.linkBy(a, b, mine, port)
            goBack()
          }}
        >
          {port.name}
        </button>
      ))}
    </div>
  )
}
