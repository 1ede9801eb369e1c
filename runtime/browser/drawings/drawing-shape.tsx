import { type ReadonlySignal, useComputed } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import type { LabDrawing } from '../../../src/client/patchbay.ts'
import type { LabWindow } from '../editing/lab-window.ts'
import { Label, useOthers } from '../map/map-label.tsx'
import { mayEdit } from '../state/session.ts'
import { stacked } from './layers.ts'
import { fontSize, lineStep, linesOf, pictureOf, type Shape, type ShapeKind, shapeOf, sizeOf, themed } from './shape.ts'

/** The drawings of a lab, behind its links and nodes. */
export function Drawings({ window: lab }: { window: LabWindow }) {
  const { drawings } = lab.editor.store
  // Only a change of a layer changes their order.
  const ids = useComputed(() => stacked(drawings.values()).map((drawing) => drawing.drawing_id))
  return (
    <>
      {ids.value.map((id) => {
        const row = drawings.row(id)
        return row && <DrawingView key={id} row={row} window={lab} />
      })}
    </>
  )
}

const nouns: Readonly<Record<ShapeKind, string>> = { rect: 'Rectangle', ellipse: 'Ellipse', line: 'Line', text: 'Text' }

/** What a drawing is, in a word; of a text also its beginning. */
export function nameOfDrawing({ svg }: LabDrawing): string {
  const shape = shapeOf(svg)
  if (shape === undefined) return 'Picture'
  return shape.kind === 'text' ? `Text “${shape.text.trim().slice(0, 60)}”` : nouns[shape.kind]
}

function DrawingView({ row, window: { editor } }: { row: ReadonlySignal<LabDrawing>; window: LabWindow }) {
  const { value: drawing } = row
  const { drawing_id: id, svg, rotation } = drawing
  const known = useMemo(() => shapeOf(svg), [svg])
  const resized = useComputed(() => (editor.resized.value?.id === id ? editor.resized.value : undefined))
  const position = editor.moves.positionOf(id)
  const transform = useComputed(() => {
    const { x, y } = resized.value ?? position.value
    return `translate(${x} ${y})`
  })
  const shape = resized.value?.shape ?? known
  const size = shape ?? sizeOf(svg)
  const isSelected = editor.selection.value.has(id)
  const others = useOthers(id, editor.store)
  return (
    <g
      class={isSelected ? 'drawing is-selected' : 'drawing'}
      transform={transform}
      data-drawing={id}
      role="button"
      tabindex={0}
      aria-pressed={isSelected}
      aria-label={nameOfDrawing(drawing)}
    >
      <g transform={rotation === 0 ? undefined : `rotate(${rotation})`}>
        {shape === undefined ? (
          // An SVG of another program never becomes a part of the page: in a picture it has no scripts and no requests.
          <image href={pictureOf(svg)} {...sides(size)} />
        ) : (
          <ShapeView shape={shape} />
        )}
        <rect class={shape === undefined || shape.kind === 'text' ? 'hit is-whole' : 'hit'} {...sides(size)} />
      </g>
      {others !== '' && <Label kind="others" text={others} at={() => ({ x: size.width / 2, y: -12 })} />}
      {isSelected && (
        <g transform={rotation === 0 ? undefined : `rotate(${rotation})`}>
          <rect class="frame" x="-4" y="-4" width={size.width + 8} height={size.height + 8} />
          {shape !== undefined &&
            rotation === 0 &&
            editor.selection.value.size === 1 &&
            mayEdit() &&
            !drawing.locked && <Corners {...sides(size)} />}
        </g>
      )}
    </g>
  )
}

const sides = ({ width, height }: { readonly width: number; readonly height: number }) => ({ width, height })

const Corners = ({ width, height }: { width: number; height: number }) => (
  <>
    {(
      [
        ['nw', -4, -4],
        ['ne', width + 4, -4],
        ['sw', -4, height + 4],
        ['se', width + 4, height + 4],
      ] as const
    ).map(([corner, x, y]) => (
      <rect
        key={corner}
        class={`corner is-${corner}`}
        data-corner={corner}
        x={x - 5}
        y={y - 5}
        width="10"
        height="10"
      />
    ))}
  </>
)

function ShapeView({ shape: { kind, attributes, text } }: { shape: Shape }) {
  const given = { ...attributes, style: paint(attributes) }
  if (kind !== 'text') {
    const Element = kind
    return <Element {...given} />
  }
  const size = fontSize(attributes)
  return (
    <text {...given} x="0" y="0" style={{ ...given.style, fontSize: `${size}px` }}>
      {linesOf(text).map((line, index) => (
        <tspan key={index} x="0" y={size * 0.95 + index * lineStep(size)}>
          {line}
        </tspan>
      ))}
    </text>
  )
}

function paint({ fill = '#000000', stroke = '' }: Shape['attributes']): Record<string, string> {
  const [area, line] = [themed(fill), themed(stroke)]
  return {
    ...(area !== undefined && { fill: `var(--${area})` }),
    ...(line !== undefined && { stroke: `var(--${line})` }),
  }
}
