import type { LabWindow } from '../editing/lab-window.ts'
import { Loaded } from '../parts/loaded.tsx'

const labPanel = () => import('./on-demand.ts').then((module) => module.LabPanel)
const nodePanel = () => import('./on-demand.ts').then((module) => module.NodePanel)
const linkPanel = () => import('./on-demand.ts').then((module) => module.LinkPanel)
const manyPanel = () => import('./on-demand.ts').then((module) => module.ManyPanel)
const drawingPanel = () => import('./on-demand.ts').then((module) => module.DrawingPanel)

/** What is selected: a node, a link, a drawing, several of them, or the lab itself. */
export function Inspector({ window: lab }: { window: LabWindow }) {
  const { editor } = lab
  const [first, ...others] = editor.selection.value
  const { nodes, links, drawings } = editor.store
  if (first !== undefined && others.length === 0) {
    const node = nodes.get(first)
    if (node !== undefined) return <Loaded key={first} load={nodePanel} props={{ node, window: lab }} />
    const link = links.get(first)
    if (link !== undefined) return <Loaded key={first} load={linkPanel} props={{ link, window: lab }} />
    const drawing = drawings.get(first)
    if (drawing !== undefined) return <Loaded key={first} load={drawingPanel} props={{ drawing, window: lab }} />
  }
  return others.length > 0 ? (
    <Loaded key="many" load={manyPanel} props={{ window: lab }} />
  ) : (
    <Loaded key="lab" load={labPanel} props={{ window: lab }} />
  )
}
