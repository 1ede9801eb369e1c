import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import type { LabTemplate } from '../../../src/client/patchbay.ts'
import { templateMedia } from '../canvas/canvas.tsx'
import { SymbolPicture } from '../canvas/symbols.tsx'
import { type Drawable, drawables } from '../drawings/shape.ts'
import type { LabWindow } from '../editing/lab-window.ts'
import { Icon } from '../parts/icon.tsx'
import { IconButton } from '../parts/icon-button.tsx'
import { Loaded } from '../parts/loaded.tsx'
import { SearchField } from '../parts/search-field.tsx'
import { notifyError } from '../state/notices.ts'
import { hasAllLabs } from '../state/session.ts'

/** Number of templates from which on they can be searched. */
const manyTemplates = 12

/** Templates and drawings, to drag onto the map; a click or Enter adds one in the middle of the map. */
export function Palette({ window: lab }: { window: LabWindow }) {
  const wanted = useSignal('')
  const templates = lab.editor.templates.value
  const words = wanted.value.trim().toLowerCase()
  const found = templates.filter(({ name, category }) => `${name} ${category}`.toLowerCase().includes(words))
  const [builtIn, own] = [found.filter((it) => it.builtin), found.filter((it) => !it.builtin)]
  const add = (template: LabTemplate) => void lab.addInMiddle(template)
  /** The node type that is being made or changed. */
  const draft = useSignal<{ readonly template?: LabTemplate } | undefined>(undefined)
  /** The doctor's line, by the kinds that no machine of the service can run. */
  const missing = useSignal<Missing>(new Map())
  useEffect(() => {
    // A student has nothing to do with machines.
    if (hasAllLabs())
      void import('./on-demand.ts')
        .then(({ missingPrograms }) => missingPrograms())
        .then((found) => {
          missing.value = found
        })
        .catch(notifyError)
  }, [])
  return (
    <>
      <nav class="palette" aria-label="Node types">
        {templates.length > manyTemplates && <SearchField label="Search node types" words={wanted} />}
        <Group title="Nodes" templates={builtIn} missing={missing.value} onAdd={add} />
        <Group
          title="Your node types"
          templates={own}
          missing={missing.value}
          onAdd={add}
          onChange={(template) => {
            draft.value = { template }
          }}
        />
        <button
          type="button"
          class="template is-adding"
          onClick={() => {
            draft.value = {}
          }}
        >
          <Icon name="plus" /> Add node type
        </button>
        <h2>Drawings</h2>
        <ul>
          {drawables.map(({ kind, noun, key }) => (
            <li key={kind}>
              <PaletteButton
                {...{ dragged: kind, title: `Drag it onto the map (${key})`, onClick: () => void lab.draw(kind) }}
              >
                <DrawablePicture kind={kind} />
                {noun}
              </PaletteButton>
            </li>
          ))}
        </ul>
      </nav>
      {draft.value !== undefined && (
        <Loaded
          load={nodeTypeDialog}
          props={{
            ...draft.value,
            onChanged: () => void lab.editor.prepare(),
            onClose: () => {
              draft.value = undefined
            },
          }}
        />
      )}
    </>
  )
}

const nodeTypeDialog = () => import('../labs/on-demand.ts').then((module) => module.NodeTypeDialog)

type Missing = ReadonlyMap<string, { readonly found: string; readonly fix: string }>

interface GroupProps {
  readonly title: string
  readonly templates: readonly LabTemplate[]
  readonly missing: Missing
  readonly onAdd: (template: LabTemplate) => void
  /** Absent: they cannot be changed. */
  readonly onChange?: (template: LabTemplate) => void
}

function Group({ title, templates, missing, onAdd, onChange }: GroupProps) {
  if (templates.length === 0) return null
  return (
    <>
      <h2>{title}</h2>
      <ul>
        {templates.map((template) => {
          const lack = missing.get(template.template_type)
          return (
            <li key={template.template_id} class={lack === undefined ? 'template-row' : 'template-row is-missing'}>
              <PaletteButton
                dragged={template.template_id}
                title={
                  lack === undefined
                    ? template.usage || `Drag ${template.name} onto the map`
                    : `It cannot run here. ${lack.found}. ${lack.fix}`
                }
                onClick={() => onAdd(template)}
              >
                <SymbolPicture name={template.symbol} />
                <span class="template-text">
                  <bdi>{template.name}</bdi>
                  {lack !== undefined && <small>{lack.found}</small>}
                </span>
              </PaletteButton>
              {onChange !== undefined && (
                <IconButton icon="pencil" title={`Change ${template.name}`} onClick={() => onChange(template)} />
              )}
            </li>
          )
        })}
      </ul>
    </>
  )
}

interface ButtonProps {
  /** The data of the drag: see `templateMedia`. */
  readonly dragged: string
  readonly title: string
  readonly onClick: () => void
  readonly children: ComponentChildren
}

const PaletteButton = ({ dragged, title, onClick, children }: ButtonProps) => (
  <button
    type="button"
    class="template"
    draggable
    title={title}
    onDragStart={(event) => {
      event.dataTransfer?.setData(templateMedia, dragged)
      if (event.dataTransfer !== null) event.dataTransfer.effectAllowed = 'copy'
    }}
    onClick={onClick}
  >
    {children}
  </button>
)

const DrawablePicture = ({ kind }: { kind: Drawable }) => (
  <svg class="symbol is-drawable" viewBox="0 0 60 60" aria-hidden="true">
    {kind === 'rect' && <rect x="8" y="15" width="44" height="30" rx="2" />}
    {kind === 'ellipse' && <ellipse cx="30" cy="30" rx="23" ry="16" />}
    {kind === 'text' && <path d="M16 16h28M30 16v30" />}
  </svg>
)
