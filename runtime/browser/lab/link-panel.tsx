import { useSignal } from '@preact/signals'
import type { LabLink } from '../../../src/client/patchbay.ts'
import type { LabWindow } from '../editing/lab-window.ts'
import {
  type Filters,
  type Knob,
  knobs,
  numberOf,
  placeOf,
  presets,
  rateText,
  valueAt,
  type Way,
  withValue,
} from '../links/impairment.ts'
import { Sparkline } from '../links/sparkline.tsx'
import { verdictOf } from '../links/verdict.ts'
import { portName } from '../map/ports.ts'
import { Icon } from '../parts/icon.tsx'
import { Segments } from '../parts/segments.tsx'
import { mayEdit } from '../state/session.ts'

/** A link: whether frames pass, how many, and its impairment. */
export function LinkPanel({ link, window: { editor, dock } }: { link: LabLink; window: LabWindow }) {
  const { nodes, rates } = editor.store
  const [first, second] = link.nodes
  const [a, b] = [nodes.get(first?.node_id ?? ''), nodes.get(second?.node_id ?? '')]
  const { grade, sentence } = verdictOf(link)
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
      <section>
        <h3>Traffic</h3>
        <Traffic from={names[0]} to={names[1]} traffic={link.traffic_ab} samples={samples.map(({ ab }) => ab)} />
        <Traffic from={names[1]} to={names[0]} traffic={link.traffic_ba} samples={samples.map(({ ba }) => ba)} />
      </section>
      <Impairment
        link={link}
        names={names}
        onChange={(way, filters) => void editor.changeLink(link.link_id, { [way]: filters })}
      />
    </aside>
  )
}

interface TrafficProps {
  readonly from: string
  readonly to: string
  readonly traffic: LabLink['traffic_ab']
  readonly samples: readonly number[]
}

const Traffic = ({ from, to, traffic, samples }: TrafficProps) => (
  <div class="traffic">
    <span class="way">
      <bdi>{from}</bdi> → <bdi>{to}</bdi>
    </span>
    <Sparkline values={samples} />
    <span class="rate">
      {traffic === null ? 'no reading' : `${Math.round(traffic.frames_per_s)} frames/s`}
      <small>{traffic === null ? '' : rateText(traffic.bits_per_s)}</small>
    </span>
    {traffic !== null && (
      <span class="muted totals">
        {traffic.frames.toLocaleString('en')} frames, {traffic.dropped.toLocaleString('en')} dropped
      </span>
    )}
  </div>
)

interface ImpairmentProps {
  readonly link: LabLink
  readonly names: readonly [string, string]
  readonly onChange: (way: Way, filters: Filters) => void
}

function Impairment({ link, names: [a, b], onChange }: ImpairmentProps) {
  const way = useSignal<Way>('filters')
  const filters = link[way.value]
  const ways: readonly (readonly [Way, string])[] = [
    ['filters', 'Both ways'],
    ['filters_ab', `to ${b}`],
    ['filters_ba', `to ${a}`],
  ]
  return (
    <section class="impairment">
      <h3>Impairment</h3>
      <Segments
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
      {mayEdit() && (
        <div class="row presets">
          <span class="muted">Presets</span>
          {presets.map(({ title, filters: wanted }) => (
            <button type="button" key={title} onClick={() => onChange(way.value, wanted)}>
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
  readonly onChange: (value: number) => void
}

/** A slider and a number. The link is changed when the slider is released. */
function KnobView({ knob, value, onChange }: KnobProps) {
  const pulled = useSignal<number | undefined>(undefined)
  const shown = pulled.value ?? value
  const take = (wanted: number) => {
    pulled.value = undefined
    if (wanted !== value) onChange(wanted)
  }
  const isDisabled = !mayEdit()
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
        value={placeOf(shown, knob)}
        onInput={(event) => {
          pulled.value = valueAt(event.currentTarget.valueAsNumber, knob)
        }}
        onChange={(event) => take(valueAt(event.currentTarget.valueAsNumber, knob))}
      />
      <input
        id={`knob-${knob.title}`}
        type="number"
        min="0"
        max={knob.most}
        step="any"
        disabled={isDisabled}
        value={shown}
        onChange={(event) => take(event.currentTarget.valueAsNumber || 0)}
      />
      <span class="unit">{knob.unit}</span>
    </div>
  )
}
