import { useSignal } from '@preact/signals'
import type { LabTemplate } from '../../../src/client/patchbay.ts'
import { templateMedia } from '../canvas/canvas.tsx'
import { isBuiltIn, symbolUrl } from '../canvas/symbols.tsx'
import type { LabWindow } from '../editing/lab-window.ts'
import { SearchField } from '../parts/search-field.tsx'

/** Number of templates from which on they can be searched. */
const manyTemplates = 12

/** The templates, to drag onto the map; a click or Enter adds a node in the middle of the map. */
export function Palette({ window: lab }: { window: LabWindow }) {
  const wanted = useSignal('')
  const templates = lab.editor.templates.value
  const words = wanted.value.trim().toLowerCase()
  const found = templates.filter(({ name, category }) => `${name} ${category}`.toLowerCase().includes(words))
  const [builtIn, own] = [found.filter((it) => it.builtin), found.filter((it) => !it.builtin)]
  const add = (template: LabTemplate) => void lab.addInMiddle(template)
  return (
    <nav class="palette" aria-label="Templates">
      {templates.length > manyTemplates && <SearchField label="Search templates" words={wanted} />}
      <Group title="Nodes" templates={builtIn} onAdd={add} />
      <Group title="Templates" templates={own} onAdd={add} />
    </nav>
  )
}

interface GroupProps {
  readonly title: string
  readonly templates: readonly LabTemplate[]
  readonly onAdd: (template: LabTemplate) => void
}

function Group({ title, templates, onAdd }: GroupProps) {
  if (templates.length === 0) return null
  return (
    <>
      <h2>{title}</h2>
      <ul>
        {templates.map((template) => (
          <li key={template.template_id}>
            <button
              type="button"
              class="template"
              draggable
              title={template.usage || `Drag ${template.name} onto the map`}
              onDragStart={(event) => {
                event.dataTransfer?.setData(templateMedia, template.template_id)
                if (event.dataTransfer !== null) event.dataTransfer.effectAllowed = 'copy'
              }}
              onClick={() => onAdd(template)}
            >
              <SymbolPicture name={template.symbol} />
              <bdi>{template.name}</bdi>
            </button>
          </li>
        ))}
      </ul>
    </>
  )
}

export const SymbolPicture = ({ name }: { name: string }) =>
  isBuiltIn(name) ? (
    <svg class="symbol" viewBox="0 0 60 60" aria-hidden="true">
      <use href={`#symbol-${name}`} />
    </svg>
  ) : (
    <img class="symbol" alt="" src={symbolUrl(name)} />
  )
