import { useSignal } from '@preact/signals'
import type { TargetedPointerEvent } from 'preact'
import { Icon } from '../parts/icon.tsx'
import type { LabStore } from '../state/lab-store.ts'
import { consolePath } from '../state/route.ts'
import { ConsoleView } from './console-view.tsx'
import type { Consoles } from './consoles.ts'

const [leastHeight, usualHeight] = [120, 300]

/** The open consoles below the map, in tabs. */
export function ConsoleDock({ consoles, store }: { consoles: Consoles; store: LabStore }) {
  const height = useSignal(usualHeight)
  const tabs = consoles.tabs.value.filter((id) => store.nodes.has(id))
  if (tabs.length === 0) return null
  const { active, news } = consoles
  const lab = store.project.value?.name ?? ''
  const resize = (by: number) => {
    height.value = Math.min(innerHeight - 160, Math.max(leastHeight, height.value + by))
  }
  return (
    <section class="dock" aria-label="Consoles" style={{ height: `${height.value}px` }}>
      <Divider onMove={resize} value={height.value} />
      <div class="tabs" role="group" aria-label="Consoles">
        {tabs.map((id) => {
          const node = store.nodes.get(id)
          const isActive = active.value === id
          return (
            <div class={`tab ${isActive ? 'is-active' : ''}`} key={id}>
              <button type="button" aria-pressed={isActive} onClick={() => consoles.show(id)}>
                <span class={`dot is-${node?.status}`} />
                <bdi>{node?.name}</bdi>
                {news.value.has(id) && <span class="news" title="New output" />}
              </button>
              <button
                type="button"
                class="tab-close"
                aria-label={`Close the console of ${node?.name}`}
                onClick={() => consoles.close(id)}
              >
                <Icon name="close" />
              </button>
            </div>
          )
        })}
        <span class="spacer" />
        {active.value !== undefined && (
          <a
            class="button is-quiet"
            target="_blank"
            rel="noreferrer"
            href={consolePath(lab, store.nodes.get(active.value)?.name ?? '')}
            title="Open in a window of its own"
          >
            <Icon name="external" />
            <span class="hidden">Open in a window of its own</span>
          </a>
        )}
      </div>
      {tabs.map((id) => {
        const node = store.nodes.get(id)
        return (
          node !== undefined && (
            <ConsoleView key={id} node={node} isShown={active.value === id} onOutput={() => consoles.hasOutput(id)} />
          )
        )
      })}
    </section>
  )
}

/** The upper edge of the dock, which is dragged, or moved by the arrow keys. */
function Divider({ onMove, value }: { onMove: (by: number) => void; value: number }) {
  const move = (event: TargetedPointerEvent<HTMLDivElement>) => {
    if (event.currentTarget.hasPointerCapture(event.pointerId)) onMove(-event.movementY)
  }
  return (
    <div
      class="divider"
      role="separator"
      aria-orientation="horizontal"
      aria-label="Height of the consoles"
      aria-valuenow={value}
      aria-valuemin={leastHeight}
      tabIndex={0}
      onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
      onPointerMove={move}
      onKeyDown={(event) => {
        const by = { ArrowUp: 20, ArrowDown: -20 }[event.key]
        if (by === undefined) return
        event.preventDefault()
        event.stopPropagation()
        onMove(by)
      }}
    />
  )
}
