import { useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import { type LabLink, PatchbayError } from '../../../src/client/patchbay.ts'
import { pause } from '../../../src/lib/async/pause.ts'
import { CaptureReader } from '../../../src/packets/capture-reader.ts'
import { pcapngOf } from '../../../src/packets/pcapng.ts'
import type { Dock } from '../console/dock.ts'
import { counted } from '../parts/counted.ts'
import { saveFile } from '../parts/downloads.ts'
import { Icon } from '../parts/icon.tsx'
import { client } from '../state/client.ts'
import { FrameDetails } from './frame-details.tsx'
import { PacketLog, timeOf } from './packet-log.ts'

/** Time between two tries to capture, ms. */
const retryMs = 1000
/** Height of a row, pixels, and rows beyond the visible ones that are drawn. */
const [rowHeight, spare] = [24, 8]

interface PacketProps {
  readonly link: LabLink
  /** Names of its ends, such as `PC1 – Switch1`. */
  readonly title: string
  readonly dock: Dock
  readonly isShown: boolean
}

/** The frames of a link as they pass. */
export function PacketView({ link, title, dock, isShown }: PacketProps) {
  const log = useMemo(() => new PacketLog(), [])
  const words = useSignal('')
  const failure = useSignal('')
  const isOpen = useSignal(false)
  const selected = useSignal<number | undefined>(undefined)
  const { project_id, link_id } = link
  const section = useRef<HTMLElement>(null)

  useLayoutEffect(() => {
    const focus = () => section.current?.querySelector<HTMLElement>('.packet-rows')?.focus()
    if (isShown && dock.wanted === link_id) focus()
    return dock.add(link_id, { send() {}, focus })
  }, [isShown, link_id])
  useEffect(() => {
    const over = new AbortController()
    const capture = async () => {
      const params = { project_id, link_id }
      const stream = await client.stream('POST /v2/projects/{project_id}/links/{link_id}/capture/stream', {
        params,
        body: {},
        signal: over.signal,
      })
      failure.value = ''
      isOpen.value = true
      const pieces = stream.getReader()
      const reader = new CaptureReader()
      for (;;) {
        const { done, value } = await pieces.read()
        if (done) return
        const { lost } = reader
        const frames = reader.push(value)
        log.add(frames, reader.lost - lost)
      }
    }
    void (async () => {
      while (!over.signal.aborted) {
        await capture().catch((error: unknown) => {
          failure.value = error instanceof PatchbayError ? error.message : 'The capture was interrupted. Trying again …'
        })
        isOpen.value = false
        await pause(retryMs, over.signal)
      }
    })()
    return () => over.abort()
  }, [project_id, link_id])

  const save = () => {
    const frames = log.frames
    const options = { interfaceName: title, comment: `Frames of ${title}` }
    const bytes = pcapngOf(frames, frames[0]?.linkType ?? 1, options)
    saveFile(`${title}.pcapng`, new Blob([bytes], { type: 'application/x-pcapng' }))
  }
  const { isPaused } = log
  const { counts } = log
  const { shown } = counts
  const row = selected.value === undefined ? undefined : rowNumbered(log, selected.value)
  return (
    <section ref={section} class={isShown ? 'packets' : 'packets is-behind'} aria-label={`Packets of ${title}`}>
      <div class="packet-tools">
        <button
          type="button"
          aria-pressed={isPaused}
          class="tool"
          onClick={() => {
            log.isPaused = !isPaused
          }}
        >
          <Icon name={isPaused ? 'play' : 'pause'} /> {isPaused ? 'Go on' : 'Pause'}
        </button>
        <button type="button" disabled={shown === 0} onClick={() => log.clear()}>
          Clear
        </button>
        <input
          type="search"
          aria-label="Filter"
          placeholder="Filter, such as arp"
          spellcheck={false}
          value={words.value}
          onInput={(event) => {
            words.value = event.currentTarget.value
            log.filter(words.value)
          }}
        />
        <span class="muted" role="status">
          {isOpen.value || counts.total > 0 ? countsOf(counts) : 'Connecting …'}
        </span>
        <span class="spacer" />
        <button type="button" disabled={shown === 0} onClick={save} title="Save the frames that are shown as pcapng">
          <Icon name="download" /> Download
        </button>
      </div>
      {failure.value !== '' && (
        <p class="reason" dir="auto">
          {failure.value}
        </p>
      )}
      <div class={row === undefined ? 'packet-body' : 'packet-body has-details'}>
        <Rows
          log={log}
          isShown={isShown}
          selected={selected.value}
          onSelect={(it) => {
            selected.value = it
          }}
        />
        {row !== undefined && <FrameDetails key={row.number} frame={row.frame} />}
      </div>
    </section>
  )
}

/** Such as `24,000 frames, 2,000 shown, 310 lost`: of a link with many frames not all come, and the table keeps the last ones. */
function countsOf({ total, shown, lost }: PacketLog['counts']): string {
  if (total === 0 && lost === 0) return 'No frames yet'
  const number = (value: number) => value.toLocaleString('en')
  const words = [counted(total, 'frame')]
  if (shown !== total) words.push(`${number(shown)} shown`)
  if (lost > 0) words.push(`${number(lost)} lost before display`)
  return words.join(', ')
}

/** The row of a number, as long as it is kept. Numbers ascend. */
function rowNumbered(log: PacketLog, number: number) {
  for (let [low, high] = [0, log.length - 1]; low <= high; ) {
    const middle = (low + high) >> 1
    const found = log.row(middle)?.number ?? 0
    if (found === number) return log.row(middle)
    if (found < number) low = middle + 1
    else high = middle - 1
  }
  return undefined
}

interface RowsProps {
  readonly log: PacketLog
  readonly isShown: boolean
  readonly selected: number | undefined
  readonly onSelect: (number: number | undefined) => void
}

/** The table. Only the rows in sight are in the page; at its end it follows the frames. */
function Rows({ log, isShown, selected, onSelect }: RowsProps) {
  const element = useRef<HTMLDivElement>(null)
  const top = useSignal(0)
  const height = useSignal(200)
  const isAtEnd = useRef(true)
  const { version } = log.counts
  useEffect(() => {
    const box = element.current
    if (box === null) return
    const observer = new ResizeObserver(() => {
      height.value = box.clientHeight
    })
    observer.observe(box)
    return () => observer.disconnect()
  }, [])
  useEffect(() => {
    if (isShown && isAtEnd.current && element.current !== null) element.current.scrollTop = element.current.scrollHeight
  }, [version, isShown, height.value])
  const { length, begin = 0 } = log
  const from = Math.max(0, Math.min(Math.floor(top.value / rowHeight), length) - spare)
  const to = Math.min(length, from + Math.ceil(height.value / rowHeight) + 2 * spare)
  const rows = isShown ? Array.from({ length: to - from }, (_, index) => log.row(from + index)) : []
  const step = (by: number) => {
    let at = 0
    while (at < length - 1 && (log.row(at)?.number ?? 0) < (selected ?? 0)) at += 1
    const index = selected === undefined ? from + spare : Math.min(length - 1, Math.max(0, at + by))
    onSelect(log.row(index)?.number)
    const box = element.current
    if (box === null) return
    const rowTop = index * rowHeight
    if (rowTop < box.scrollTop) box.scrollTop = rowTop
    if (rowTop + 2 * rowHeight > box.scrollTop + box.clientHeight)
      box.scrollTop = rowTop + 2 * rowHeight - box.clientHeight
  }
  return (
    <div class="packet-table">
      <div class="packet-row is-head" aria-hidden="true">
        {['No.', 'Time', 'Source', 'Destination', 'Protocol', 'Length', 'Info'].map((it) => (
          <span key={it}>{it}</span>
        ))}
      </div>
      <div
        ref={element}
        class="packet-rows"
        role="listbox"
        aria-label="Packets"
        aria-activedescendant={rows.some((it) => it?.number === selected) ? `packet-${selected}` : undefined}
        tabIndex={0}
        onScroll={({ currentTarget: box }) => {
          top.value = box.scrollTop
          isAtEnd.current = box.scrollTop + box.clientHeight > box.scrollHeight - rowHeight
        }}
        onKeyDown={(event) => {
          const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20 }[event.key]
          if (event.key === 'Escape') onSelect(undefined)
          else if (by !== undefined && length > 0) step(by)
          else return
          event.preventDefault()
          event.stopPropagation()
        }}
      >
        <div role="presentation" style={{ height: `${from * rowHeight}px` }} />
        {rows.map(
          (row) =>
            row !== undefined && (
              // The table has the focus, and takes the keys for its rows.
              // biome-ignore lint/a11y/useKeyWithClickEvents lint/a11y/useFocusableInteractive: see above
              <div
                key={row.number}
                class={`packet-row is-${tintOf(row.protocol)}`}
                id={`packet-${row.number}`}
                role="option"
                aria-posinset={row.number}
                aria-setsize={-1}
                aria-selected={row.number === selected}
                onClick={() => onSelect(row.number === selected ? undefined : row.number)}
              >
                <span>{row.number}</span>
                <span>{(timeOf(row.frame) - begin).toFixed(6)}</span>
                <span>{row.source}</span>
                <span>{row.destination}</span>
                <span>{row.protocol}</span>
                <span>{row.frame.length}</span>
                <span>{row.info}</span>
              </div>
            ),
        )}
        <div role="presentation" style={{ height: `${(length - to) * rowHeight}px` }} />
      </div>
    </div>
  )
}

/** The family of a protocol, for a tint of its rows. */
function tintOf(protocol: string): string {
  if (/^(ARP|RARP)/.test(protocol)) return 'arp'
  if (/^ICMP/.test(protocol)) return 'icmp'
  if (/^(TCP|HTTP|BGP)/.test(protocol)) return 'tcp'
  if (/^(UDP|DNS|MDNS|DHCP|LLMNR)/.test(protocol)) return 'udp'
  return 'other'
}
