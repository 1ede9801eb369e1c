import { type ReadonlySignal, useComputed } from '@preact/signals'
import { useRef } from 'preact/hooks'
import type { LabWindow } from '../editing/lab-window.ts'
import { boxAround, overlaps, touches } from '../map/geometry.ts'
import { LinkShape } from './link-shape.tsx'
import { NodeShape } from './node-shape.tsx'

/** The links and nodes of the map; of a large lab those that are in sight. */
export function Shapes({ window: lab }: { window: LabWindow }) {
  const { editor } = lab
  const { nodes, links } = editor.store
  const shownNodes = useStableList(() => {
    const { value: region } = lab.region
    if (region === undefined) return nodes.ids.value
    const { value: selection } = editor.selection
    return nodes.ids.value.filter((id) => {
      const node = nodes.get(id)
      return node !== undefined && (selection.has(id) || touches(node, region))
    })
  })
  const shownLinks = useStableList(() => {
    const { value: region } = lab.region
    const { value: selection } = editor.selection
    return links.ids.value.filter((id) => {
      const ends =
        links
          .row(id)
          ?.peek()
          .nodes.map((end) => end.node_id) ?? []
      if ([id, ...ends].some((it) => selection.has(it))) return true
      const found = ends.flatMap((it) => nodes.get(it) ?? [])
      // Every node has one to the management network.
      if (found.some((node) => node.properties.management)) return false
      return region === undefined || overlaps(boxAround(found), region)
    })
  })
  return (
    <>
      {shownLinks.value.map((id) => (
        <LinkShape key={id} id={id} window={lab} />
      ))}
      {shownNodes.value.map((id) => (
        <NodeShape key={id} id={id} window={lab} />
      ))}
    </>
  )
}

/** A list that stays the same one as long as it has the same members. */
function useStableList(list: () => readonly string[]): ReadonlySignal<readonly string[]> {
  const last = useRef<readonly string[]>([])
  return useComputed(() => {
    const next = list()
    if (next.join() !== last.current.join()) last.current = next
    return last.current
  })
}
