import { useSignal } from '@preact/signals'
import type { CapturedFrame } from '../../../src/packets/capture-reader.ts'
import { dissect } from '../../../src/packets/decode.ts'
import type { Field } from '../../../src/packets/dissection.ts'

/** Bytes in a line of the dump, and bytes that are dumped. */
const [lineLength, maxDumped] = [16, 2048]

/** One frame: its layers as a tree, and its bytes, of which those of the chosen field are marked. */
export function FrameDetails({ frame }: { frame: CapturedFrame }) {
  const marked = useSignal<readonly [number, number]>([0, 0])
  const { layers } = dissect(frame)
  const mark = (field: Field) => {
    marked.value = [field.from, field.to]
  }
  return (
    <div class="packet-details">
      <div class="layers">
        {layers.map((layer) => (
          <Tree key={`${layer.name} ${layer.from}`} field={layer} onMark={mark} />
        ))}
      </div>
      <Dump bytes={frame.bytes} marked={marked.value} />
    </div>
  )
}

function Tree({ field, onMark }: { field: Field; onMark: (field: Field) => void }) {
  const text = field.value === '' ? field.name : `${field.name}: ${field.value}`
  if (field.fields.length === 0)
    return (
      <button type="button" class="field-line" onClick={() => onMark(field)}>
        {text}
      </button>
    )
  return (
    <details onToggle={() => onMark(field)}>
      <summary>{text}</summary>
      {field.fields.map((it, index) => (
        <Tree key={`${it.name} ${it.from} ${index}`} field={it} onMark={onMark} />
      ))}
    </details>
  )
}

function Dump({ bytes, marked: [from, to] }: { bytes: Uint8Array; marked: readonly [number, number] }) {
  const shown = bytes.subarray(0, maxDumped)
  const lines = Array.from({ length: Math.ceil(shown.length / lineLength) }, (_, index) => index * lineLength)
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is reached by the keyboard
    <section class="dump" tabIndex={0} aria-label="Bytes">
      {lines.map((at) => {
        const line = [...shown.subarray(at, at + lineLength)]
        const isMarked = (index: number) => at + index >= from && at + index < to
        return (
          <div key={at}>
            <span class="muted">{at.toString(16).padStart(4, '0')} </span>
            {line.map((byte, index) => (
              <span key={index} class={isMarked(index) ? 'is-marked' : undefined}>
                {` ${byte.toString(16).padStart(2, '0')}`}
              </span>
            ))}
            {'   '.repeat(lineLength - line.length)}
            {'  '}
            {line.map((byte) => (byte > 31 && byte < 127 ? String.fromCharCode(byte) : '.')).join('')}
          </div>
        )
      })}
      {bytes.length > maxDumped && <div class="muted">… {bytes.length - maxDumped} more bytes</div>}
    </section>
  )
}
