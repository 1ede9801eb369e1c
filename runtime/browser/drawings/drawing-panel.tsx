import { useEffect, useRef } from 'preact/hooks'
import type { LabDrawing } from '../../../src/client/patchbay.ts'
import type { LabWindow } from '../editing/lab-window.ts'
import { Icon } from '../parts/icon.tsx'
import { RadioGroup } from '../parts/radio-group.tsx'
import { mayEdit } from '../state/session.ts'
import { nameOfDrawing } from './drawing-shape.tsx'
import {
  colourOf,
  colours,
  fontSize,
  maxSide,
  minSide,
  type Shape,
  shapeOf,
  svgOf,
  withColour,
  withSize,
  withText,
} from './shape.ts'

/** Opacities of areas. */
const fills: readonly (readonly [string, string])[] = [
  ['0', 'None'],
  ['0.15', 'Light'],
  ['1', 'Full'],
]

/** A drawing: its words, colour and size. */
export function DrawingPanel({ drawing, window: { editor, wanted } }: { drawing: LabDrawing; window: LabWindow }) {
  const { drawing_id, svg, locked } = drawing
  const shape = shapeOf(svg)
  const name = nameOfDrawing(drawing)
  const words = useRef<HTMLTextAreaElement>(null)
  useEffect(() => {
    if (wanted.value !== 'drawing-text') return
    wanted.value = undefined
    words.current?.focus()
    words.current?.select()
  }, [wanted.value])
  const change = (next: Shape) => {
    const changed = svgOf(next)
    if (changed !== svg) void editor.changeDrawing(drawing_id, { svg: changed })
  }
  const isDisabled = !mayEdit() || locked
  return (
    <aside class="inspector" aria-label={name}>
      <h2 dir="auto">{name}</h2>
      {mayEdit() && (
        <div class="row">
          <label class="flag">
            <input
              type="checkbox"
              checked={locked}
              onChange={(event) => void editor.changeDrawing(drawing_id, { locked: event.currentTarget.checked })}
            />
            Locked
          </label>
          <span class="spacer" />
          <button type="button" class="is-danger" onClick={() => void editor.removeSelected()}>
            <Icon name="trash" /> Delete
          </button>
        </div>
      )}
      {mayEdit() && (
        <div class="row">
          <button type="button" title="Shift+F" disabled={locked} onClick={() => void editor.restack('front')}>
            <Icon name="front" /> To front
          </button>
          <button type="button" title="Shift+B" disabled={locked} onClick={() => void editor.restack('back')}>
            <Icon name="behind" /> To back
          </button>
        </div>
      )}
      {shape === undefined ? (
        <p class="muted">Drawn by another program: here it can only be moved and deleted.</p>
      ) : (
        <>
          {shape.kind === 'text' && (
            <div class="field">
              <label for="drawing-text">Text</label>
              <textarea
                id="drawing-text"
                ref={words}
                rows={4}
                maxLength={5000}
                disabled={isDisabled}
                value={shape.text}
                onChange={(event) => change(withText(shape, event.currentTarget.value))}
              />
            </div>
          )}
          <Colours shape={shape} isDisabled={isDisabled} onChange={change} />
          {shape.kind === 'text' ? (
            <Side
              {...{ title: 'Size', value: fontSize(shape.attributes), least: 6, most: 200, isDisabled }}
              onChange={(size) => change(withText(shape, shape.text, size))}
            />
          ) : (
            <div class="row">
              {(['width', 'height'] as const).map((side) => (
                <Side
                  key={side}
                  {...{ title: side === 'width' ? 'Width' : 'Height', value: shape[side], isDisabled }}
                  {...{ least: minSide, most: maxSide }}
                  onChange={(value) => change(withSize(shape, { ...shape, [side]: value }))}
                />
              ))}
            </div>
          )}
        </>
      )}
    </aside>
  )
}

interface ColoursProps {
  readonly shape: Shape
  readonly isDisabled: boolean
  readonly onChange: (shape: Shape) => void
}

function Colours({ shape, isDisabled, onChange }: ColoursProps) {
  const now = colourOf(shape)
  const { fill = '#000000', 'fill-opacity': opacity = '1' } = shape.attributes
  const shown = fill === 'none' ? '0' : String(Number(opacity))
  return (
    <>
      <fieldset class="colours" disabled={isDisabled}>
        <legend>Colour</legend>
        {colours.map(({ name, value }) => (
          <label key={value} title={name} class={value === now ? 'is-active' : ''}>
            <input
              class="hidden"
              type="radio"
              name="colour"
              aria-label={name}
              checked={value === now}
              onChange={() => onChange(withColour(shape, value))}
            />
            <span style={{ background: value === '#000000' ? 'var(--text)' : value }} />
          </label>
        ))}
        <input
          type="color"
          aria-label="Another colour"
          title="Another colour"
          value={/^#[\da-f]{6}$/.test(now) ? now : '#000000'}
          onChange={(event) => onChange(withColour(shape, event.currentTarget.value))}
        />
      </fieldset>
      {!isDisabled && (shape.kind === 'rect' || shape.kind === 'ellipse') && (
        <div class="row">
          <span>Fill</span>
          <RadioGroup
            label="Fill"
            value={shown}
            options={fills}
            onChange={(value) => {
              const area = { fill: fill === 'none' ? now : fill, 'fill-opacity': value }
              onChange({ ...shape, attributes: { ...shape.attributes, ...area } })
            }}
          />
        </div>
      )}
    </>
  )
}

interface SideProps {
  readonly title: string
  readonly value: number
  readonly least: number
  readonly most: number
  readonly isDisabled: boolean
  readonly onChange: (value: number) => void
}

/** A length in pixels of the map. */
const Side = ({ title, value, least, most, isDisabled, onChange }: SideProps) => (
  <div class="field">
    <label for={`drawing-${title}`}>{title}</label>
    <input
      id={`drawing-${title}`}
      type="number"
      min={least}
      max={most}
      disabled={isDisabled}
      value={value}
      onChange={({ currentTarget: { valueAsNumber: given } }) => {
        if (given >= least && given <= most) onChange(given)
      }}
    />
  </div>
)
