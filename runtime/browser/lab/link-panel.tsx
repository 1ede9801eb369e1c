import { useSignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import type { LabLink, LabLinkEnd } from '../../../src/client/patchbay.ts'
import type { LabEditor } from '../editing/lab-editor.ts'
import type { LabWindow } from '../editing/lab-window.ts'
import { wiresharkLine } from '../links/drops.ts'
import { FrameFilter } from '../links/frame-filter.tsx'
import {
  type ImpairedDirection,
  type Knob,
  knobs,
  type LinkFilters,
  numberFault,
  numberOf,
  presets,
  sliderAt,
  steppedBy,
  valueAt,
  withValue,
} from '../links/impairment.ts'
import { Traffic } from '../links/traffic.tsx'
import { verdictOf } from '../links/verdict.ts'
import { isPort, portName, portsFor } from '../map/ports.ts'
import { CopyText } from '../parts/copy-text.tsx'
import { FieldDraft } from '../parts/draft.ts'
import { ErrorMessage } from '../parts/error-message.tsx'
import { Icon } from '../parts/icon.tsx'
import { RadioGroup } from '../parts/radio-group.tsx'
import { mayEdit, session } from '../state/session.ts'

/** A link: whether frames pass, how many, and its impairment. */
export function LinkPanel({ link, window: { editor, dock } }: { link: LabLink; window: LabWindow }) {
  const { nodes, rates } = editor.store
  const [first, second] = link.nodes
  const [a, b] = [nodes.get(first?.node_id ?? ''), nodes.get(second?.node_id ?? '')]
  const { grade, sentence } = verdictOf(link)
  const needsToken = session.value?.expires_at != null
  const samples = rates.get(link.link_id) ?? []
  const names = [a?.name ?? '?', b?.name ?? '?'] as const
  return (
    <aside class="inspector" aria-label="Link">
      <h2 class="ends">
        <button type="button" class="is-quiet" onClick={() => a && editor.select([a.node_id])}>
          <bdi>{names[0]}</bdi> <small>{first && portName(a, first)}</small>
        </button>
        <Icon name="link" />
        <button type="button" class="is-quiet" onClick={() => b && editor.select([b.node_id])}>
          <bdi>{names[1]}</bdi> <small>{second && portName(b, second)}</small>
        </button>
      </h2>
      {mayEdit() && (
        <div class="form-fields">
          {link.nodes.map((end) => (
            <PortField key={end.node_id} {...{ link, end, editor }} />
          ))}
        </div>
      )}
      <p class={`verdict-line is-${grade}`} role="status">
        <span class={`verdict is-${grade}`} /> <span dir="auto">{sentence}</span>
      </p>
      {mayEdit() && (
        <div class="row">
          <button type="button" class="is-main" onClick={() => dock.open(link.link_id)}>
            <Icon name="packets" /> Packets
          </button>
          <button type="button" onClick={() => void editor.changeLink(link.link_id, { suspend: !link.suspend })}>
            <Icon name={link.suspend ? 'play' : 'pause'} /> {link.suspend ? 'Resume' : 'Suspend'}
          </button>
          <button type="button" class="is-danger" onClick={() => void editor.removeSelected()}>
            <Icon name="trash" /> Delete
          </button>
        </div>
      )}
      <Traffic link={link} ends={[a, b]} samples={samples} />
      <Impairment
        link={link}
        names={names}
        onChange={(way, filters) => editor.changeLink(link.link_id, { [way]: filters })}
        onCheck={(filters, signal) => editor.checkFilters(link.link_id, filters, signal)}
        onFilter={(way, filters) => editor.tryLink(link.link_id, { [way]: filters })}
      />
      {mayEdit() && (
        <details>
          <summary>Open in Wireshark</summary>
          <p class="help">
            Run this on a machine with Wireshark; it runs until either end stops
            {needsToken && '; set PATCHBAY_TOKEN there to one of your tokens'}.
          </p>
          <CopyText text={wiresharkLine(location.origin, link, needsToken)} what="line for Wireshark" />
        </details>
      )}
    </aside>
  )
}

interface PortFieldProps {
  readonly link: LabLink
  readonly end: LabLinkEnd
  readonly editor: LabEditor
}

/** The port at an end of a link, and the free ones to plug it into; nothing for a node with a single port. */
function PortField({ link, end, editor }: PortFieldProps) {
  const node = editor.store.nodes.get(end.node_id)
  if (node === undefined || node.ports.length < 2) return null
  const ports = portsFor(node, end, editor.store.links.values())
  const id = `port-of-${node.node_id}`
  return (
    <div class="field">
      <label for={id}>
        Port of <bdi>{node.name}</bdi>
      </label>
      <select
        id={id}
        value={portName(node, end)}
        onChange={({ currentTarget: { value } }) => {
          const port = ports.find(({ name }) => name === value)
          if (port !== undefined && !isPort(port, end)) void editor.replug(link, end, port)
        }}
      >
        {ports.map(({ name }) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </div>
  )
}

interface ImpairmentProps {
  readonly link: LabLink
  readonly names: readonly [string, string]
  readonly onChange: (way: ImpairedDirection, filters: LinkFilters) => Promise<void>
  readonly onCheck: (filters: LinkFilters, signal: AbortSignal) => Promise<string>
  /** Resolves with why it is refused; empty: it is not. */
  readonly onFilter: (way: ImpairedDirection, filters: LinkFilters) => Promise<string>
}

function Impairment({ link, names: [a, b], onChange, onCheck, onFilter }: ImpairmentProps) {
  const way = useSignal<ImpairedDirection>('filters')
  const filters = link[way.value]
  const ways: readonly (readonly [ImpairedDirection, string])[] = [
    ['filters', 'Both ways'],
    ['filters_ab', `to ${b}`],
    ['filters_ba', `to ${a}`],
  ]
  return (
    <section class="impairment">
      <h3>Impairment</h3>
      <RadioGroup
        label="Direction"
        value={way.value}
        options={ways.map(([name, title]) => [
          name,
          <>
            <bdi>{title}</bdi>
            {name !== way.value && Object.keys(link[name]).length > 0 && <span class="news" title="Impaired" />}
          </>,
        ])}
        onChange={(it) => {
          way.value = it
        }}
      />
      {knobs.map((knob) => (
        <KnobView
          key={`${way.value} ${knob.title}`}
          knob={knob}
          value={numberOf(filters, knob)}
          onChange={(value) => onChange(way.value, withValue(filters, knob, value))}
        />
      ))}
      <FrameFilter key={way.value} filters={filters} onCheck={onCheck} onChange={(it) => onFilter(way.value, it)} />
      {mayEdit() && (
        <div class="row presets">
          <span class="muted">Presets</span>
          {presets.map(({ title, filters: wanted }) => (
            <button
              type="button"
              key={title}
              onClick={() => void onChange(way.value, { ...(filters.bpf && { bpf: filters.bpf }), ...wanted })}
            >
              {title}
            </button>
          ))}
        </div>
      )}
    </section>
  )
}

interface KnobProps {
  readonly knob: Knob
  readonly value: number
  /** Resolves when the link has it, or was refused. */
  readonly onChange: (value: number) => Promise<void>
}

/** Keys that move a slider. */
const ways: Readonly<Record<string, 1 | -1>> = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }

/** A slider and a number. The link is changed when the slider, or its key, is released. */
function KnobView({ knob, value, onChange }: KnobProps) {
  /** Where the slider is until the link has it: the next key goes on from there. */
  const pulled = useMemo(() => new FieldDraft<number>(), [])
  /** What is being typed: the panel is drawn again with each reading of the traffic. */
  const typed = useSignal<string | undefined>(undefined)
  const shown = pulled.value ?? value
  const submit = async (wanted: number) => {
    typed.value = undefined
    await pulled.submit(wanted, async () => wanted !== value && onChange(wanted))
  }
  const release = () => {
    if (pulled.value !== undefined) void submit(pulled.value)
  }
  const isDisabled = !mayEdit()
  const fault = typed.value === undefined ? '' : numberFault(knob, Number(typed.value))
  return (
    <div class="knob">
      <label for={`knob-${knob.title}`}>{knob.title}</label>
      <input
        type="range"
        min="0"
        max="100"
        step="any"
        aria-label={`${knob.title}, slider`}
        aria-valuetext={`${shown} ${knob.unit}`}
        disabled={isDisabled}
        value={sliderAt(shown, knob)}
        onInput={(event) => {
          pulled.value = valueAt(event.currentTarget.valueAsNumber, knob)
        }}
        onChange={(event) => void submit(valueAt(event.currentTarget.valueAsNumber, knob))}
        onKeyDown={(event) => {
          const way = ways[event.key]
          if (way === undefined) return
          event.preventDefault()
          pulled.value = steppedBy(shown, way, knob)
        }}
        onKeyUp={(event) => ways[event.key] !== undefined && release()}
      />
      <input
        id={`knob-${knob.title}`}
        type="number"
        min="0"
        max={knob.most}
        step="any"
        disabled={isDisabled}
        value={typed.value ?? shown}
        onInput={(event) => {
          typed.value = event.currentTarget.value
        }}
        aria-invalid={fault !== ''}
        onChange={(event) => {
          const wanted = event.currentTarget.valueAsNumber || 0
          // It stays in the field, with what would be right.
          if (numberFault(knob, wanted) === '') void submit(wanted)
        }}
      />
      <span class="unit">{knob.unit}</span>
      <ErrorMessage text={fault} />
    </div>
  )
}
