import { useEffect, useMemo } from 'preact/hooks'
import { Ended } from '../parts/ended.tsx'
import { client } from '../state/client.ts'
import { LiveLab } from '../state/live-lab.ts'
import { notify } from '../state/notices.ts'
import { mayEdit } from '../state/session.ts'
import { ConsoleTools } from './console-tools.tsx'
import { Dock } from './dock.ts'
import { NodeConsole } from './node-console.tsx'
import { SearchBar } from './search-bar.tsx'

/** The console of a node in a window of its own; `wanted` is its name or id. */
export function ConsoleScreen({ lab, node: wanted }: { lab: string; node: string }) {
  const live = useMemo(() => new LiveLab(client, lab, notify), [lab])
  const dock = useMemo(() => new Dock(), [lab])
  useEffect(() => {
    if (!mayEdit()) return
    const over = new AbortController()
    void live.follow(over.signal)
    return () => over.abort()
  }, [live])
  useEffect(() => {
    document.title = `${wanted} – ${lab}`
  }, [wanted, lab])
  const node = live.store.nodes.values().find((it) => it.name === wanted || it.node_id === wanted)
  useEffect(() => {
    if (node !== undefined) dock.open(node.node_id)
  }, [node?.node_id])
  const connection = live.connection.value
  const end = live.store.end.value
  if (!mayEdit()) return <Ended text="Consoles need the role operate." />
  if (connection.state === 'gone') return <Ended text={connection.message} />
  if (end !== undefined) return <Ended text={`This lab was ${end}.`} />
  if (node === undefined)
    return <Ended text={connection.state === 'live' ? `No such node: ${wanted}.` : 'Connecting …'} />
  return (
    <main class="console-window">
      <div class="tabs">
        <span class={`dot is-${node.status}`} /> <bdi>{node.name}</bdi>
        <span class="spacer" />
        <ConsoleTools node={node} dock={dock} tab={node.node_id} />
      </div>
      {dock.isSearching.value && <SearchBar dock={dock} />}
      <div class="pane">
        <NodeConsole node={node} dock={dock} console={undefined} isShown />
      </div>
    </main>
  )
}
