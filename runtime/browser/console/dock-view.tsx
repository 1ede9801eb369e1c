import { useSignal } from '@preact/signals'
import type { TargetedPointerEvent } from 'preact'
import { useEffect } from 'preact/hooks'
import type { LabLink, LabNode } from '../../../src/client/patchbay.ts'
import { Icon } from '../parts/icon.tsx'
import { IconButton } from '../parts/icon-button.tsx'
import { Loaded } from '../parts/loaded.tsx'
import type { LabStore } from '../state/lab-store.ts'
import { consolePath } from '../state/route.ts'
import { ConsoleTools } from './console-tools.tsx'
import type { Dock } from './dock.ts'
import { NodeConsole } from './node-console.tsx'
import { SearchBar } from './search-bar.tsx'
import { partsOf, tabOf } from './tabs.ts'

const leastHeight = 120
/** The height at first: on a phone, what is selected is below it, and the map keeps some room. */
const defaultHeight = () => Math.round(Math.min(300, innerHeight * (isNarrow() ? 0.28 : 0.4)))
/** There several panes are one above the other: together they need more. */
const isNarrow = () => innerWidth <= 760
const stackedHeight = () => Math.round(Math.min(300, innerHeight * 0.36))

/** The open consoles and captures below the map. */
export function DockView({ dock, store }: { dock: Dock; store: LabStore }) {
  const height = useSignal(defaultHeight())
  const { active, panes, news } = dock
  const isThere = (tab: string) => store.nodes.has(partsOf(tab)[0]) || store.links.has(tab)
  const tabs = dock.tabs.value.filter(isThere)
  // Closes the tabs of deleted nodes and links.
  useEffect(() => {
    if (store.project.value === undefined) return
    for (const id of dock.tabs.value) if (!isThere(id)) dock.close(id, true)
  }, [store.nodes.ids.value, store.links.ids.value])
  const isStacked = panes.value.length > 1 && isNarrow()
  useEffect(() => {
    if (isStacked) height.value = Math.max(height.value, stackedHeight())
  }, [isStacked])
  if (tabs.length === 0) return null
  const resize = (by: number) => {
    height.value = Math.min(innerHeight - 160, Math.max(leastHeight, height.value + by))
  }
  return (
    <section class="dock" aria-label="Consoles" style={{ height: `${height.value}px` }}>
      <Divider onMove={resize} value={height.value} />
      <div class="tabs" role="group" aria-label="Consoles">
        {tabs.map((id) => {
          const node = store.nodes.get(partsOf(id)[0])
          const name = titleOf(id, store)
          const isShown = panes.value.includes(id)
          return (
            <div class={`tab${isShown ? ' is-shown' : ''}${active.value === id ? ' is-active' : ''}`} key={id}>
              <button
                type="button"
                aria-pressed={isShown}
                title="Ctrl-click shows it beside the others"
                onClick={(event) => (event.ctrlKey || event.metaKey ? dock.toggle(id) : dock.show(id))}
              >
                {node === undefined ? <Icon name="packets" /> : <span class={`dot is-${node.status}`} />}
                <bdi>{name}</bdi>
                {news.value.has(id) && <span class="news" title="New output" />}
              </button>
              <button
                type="button"
                class="tab-close"
                aria-label={`Close the ${node === undefined ? 'packets' : 'console'} of ${name}`}
                onClick={() => dock.close(id)}
              >
                <Icon name="close" />
              </button>
            </div>
          )
        })}
        <span class="spacer" />
        <Tools dock={dock} store={store} count={tabs.length} />
      </div>
      {dock.isSearching.value && dock.console(active.value)?.terminal !== undefined && <SearchBar dock={dock} />}
      <div class="panes">
        {tabs.map((id) => {
          const [nodeId, console] = partsOf(id)
          const [node, link] = [store.nodes.get(nodeId), store.links.get(id)]
          const at = panes.value.indexOf(id)
          return (
            <div
              key={id}
              class={`pane${at < 0 ? ' is-behind' : ''}${panes.value.length > 1 && active.value === id ? ' is-active' : ''}`}
              style={{ order: at }}
              onFocusIn={() => dock.activate(id)}
            >
              {node !== undefined && <NodeConsole node={node} dock={dock} console={console} isShown={at >= 0} />}
              {link !== undefined && <Packets link={link} title={titleOf(id, store)} dock={dock} isShown={at >= 0} />}
            </div>
          )
        })}
      </div>
    </section>
  )
}

/** The name of a tab: that of a node, or those of the ends of a link. */
function titleOf(id: string, { nodes, links }: LabStore): string {
  const ends = links.get(id)?.nodes.map(({ node_id }) => nodes.get(node_id)?.name ?? '?')
  const [node, console] = partsOf(id)
  const name = nodes.get(node)?.name
  return (name === undefined ? ends?.join(' – ') : tabOf(name, console)) ?? ''
}

/** The names of the further consoles of a node. */
function furtherOf({ properties }: LabNode): string[] {
  const { consoles = [] } = properties as { consoles?: readonly { readonly name: string }[] }
  return consoles.map(({ name }) => name)
}

/** What can be done with the tab that is active, and with all. */
function Tools({ dock, store, count }: { dock: Dock; store: LabStore; count: number }) {
  const { active, panes, isShared } = dock
  const [id, console] = partsOf(active.value ?? '')
  const node = store.nodes.get(id)
  const consoles = panes.value.filter((it) => store.nodes.has(partsOf(it)[0]))
  return (
    <>
      {consoles.length > 1 && (
        <button
          type="button"
          class="tool is-quiet"
          aria-pressed={isShared.value}
          title="What is typed goes to all consoles that are shown"
          onClick={() => {
            isShared.value = !isShared.value
          }}
        >
          <Icon name="keys" /> Type to all
        </button>
      )}
      {count > 1 && (
        <IconButton icon="columns" title="Side by side" isOn={panes.value.length > 1} onClick={() => dock.spread()} />
      )}
      {node !== undefined && (
        <>
          {furtherOf(node).map((name) => (
            <button
              type="button"
              class="tool is-quiet"
              title="Open another console"
              key={name}
              onClick={() => dock.open(tabOf(id, name))}
            >
              {name}
            </button>
          ))}
          <ConsoleTools key={active.value} node={node} dock={dock} tab={active.value ?? ''} />
          {console === undefined && (
            <a
              class="button is-quiet"
              target="_blank"
              rel="noreferrer"
              href={consolePath(store.project.value?.name ?? '', node.name)}
              title="Open in a separate window"
            >
              <Icon name="external" />
              <span class="hidden">Open in a separate window</span>
            </a>
          )}
        </>
      )}
    </>
  )
}

interface PacketsProps {
  readonly link: LabLink
  readonly title: string
  readonly dock: Dock
  readonly isShown: boolean
}

const packetView = () => import('../packets/packet-view.tsx').then((module) => module.PacketView)

/** The packets of a link; their part of the page is loaded with the first of them. */
const Packets = (props: PacketsProps) => <Loaded load={packetView} props={props} />

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
