import { useId } from 'preact/hooks'
import { withoutVerdict } from '../../../src/importers/loss.ts'
import { wordOfKind } from '../../../src/labfile/short-words.ts'
import { ErrorMessage } from '../parts/error-message.tsx'
import { sizeText } from '../parts/size-text.ts'
import type { LossView } from './file-import.ts'
import type { ImportResult } from './import-result.ts'
import type { NodeRow } from './node-rows.ts'

/** Most nodes with a row of their own. */
const maxRows = 200

/** Which nodes of an imported lab can run, and what to do about the others. */
export function ImportResultView({ result }: { result: ImportResult }) {
  const { total, rows, upload, failure } = result
  const missing = result.missing.length
  const running = upload.value
  return (
    <div class="import-result">
      <h3>
        <span role="status">{missing === 0 ? allRun(total) : `${total - missing} of ${total} nodes can run`}</span>
      </h3>
      {missing > 0 && <p class="muted">The others keep their place, ports and links, and are not started.</p>}
      <ul>
        {rows.value.slice(0, maxRows).map((row) => (
          <NodeRowView key={row.name} row={row} result={result} />
        ))}
      </ul>
      {rows.value.length > maxRows && <p class="muted">And {rows.value.length - maxRows} more.</p>}
      {running !== undefined && running.state.value === 'running' && (
        <div class="upload">
          <progress
            value={running.stored.value}
            max={Math.max(1, running.total)}
            aria-label={`Upload of ${running.name}`}
          />
          <span class="muted" role="status">
            {running.name}: {sizeText(running.stored.value)} of {sizeText(running.total)}
          </span>
        </div>
      )}
      <ErrorMessage text={failure.value !== '' ? failure.value : (running?.reason.value ?? '')} />
    </div>
  )
}

const allRun = (total: number): string => (total === 1 ? 'The node can run' : `All ${total} nodes can run`)

function NodeRowView({ row, result }: { row: NodeRow; result: ImportResult }) {
  const { name, from, kind, reason, images, hint, note } = row
  const what = from === '' || from === kind ? wordOfKind(kind) : `${from} → ${wordOfKind(kind)}`
  return (
    <li class={reason === undefined ? 'node-row' : 'node-row is-missing'}>
      <span class="node-row-name">
        <span class={`verdict is-${reason === undefined ? 'good' : 'bad'}`} /> <b dir="auto">{name}</b>{' '}
        <small class="muted">{reason === undefined ? what : from || wordOfKind(kind)}</small>
      </span>
      <span class="node-row-text" dir="auto">
        {reason === undefined ? note || 'can run' : sentence(reason)}
        {reason !== undefined && hint !== undefined && <small class="muted">{hint}</small>}
      </span>
      {reason !== undefined && (
        <span class="row node-row-actions">
          {images.map((image) => (
            <UploadButton key={image} image={image} label={images.length > 1} node={row} result={result} />
          ))}
          <ReplaceChoice node={row} result={result} />
        </span>
      )}
    </li>
  )
}

const sentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

interface ActionProps {
  readonly node: NodeRow
  readonly result: ImportResult
}

/** Takes the file of an image, whatever its name is. */
function UploadButton({ image, label, node, result }: ActionProps & { image: string; label: boolean }) {
  const id = useId()
  return (
    <label class="button" for={id} title={`Upload ${image} for ${node.name}`}>
      {label ? `Upload ${image}` : 'Upload image'}
      <input
        id={id}
        type="file"
        class="hidden"
        aria-label={`Upload ${image} for ${node.name}`}
        disabled={result.upload.value?.state.value === 'running'}
        onChange={(event) => {
          const [file] = event.currentTarget.files ?? []
          if (file !== undefined) void result.give(node.kind, image, file)
          event.currentTarget.value = ''
        }}
      />
    </label>
  )
}

/** Chooses the node type that takes the place of a node. */
function ReplaceChoice({ node, result }: ActionProps) {
  return (
    <select
      aria-label={`Replace ${node.name} by`}
      value=""
      disabled={result.busy.value !== '' || result.templates.value.length === 0}
      onChange={(event) => {
        const template = result.templates.value.find(({ template_id }) => template_id === event.currentTarget.value)
        if (template !== undefined) void result.replace(node.name, template)
      }}
    >
      <option value="">{result.busy.value === node.name ? 'Replacing …' : 'Replace by …'}</option>
      {result.templates.value.map(({ template_id, name }) => (
        <option key={template_id} value={template_id}>
          {name}
        </option>
      ))}
    </select>
  )
}

/** Parts of the file that the lab has in another form, or not at all: a line each. */
export function Losses({ title, losses }: { title: string; losses: readonly LossView[] }) {
  if (losses.length === 0) return null
  return (
    <details open={losses.length <= maxOpen}>
      <summary>
        {title} ({losses.length})
      </summary>
      <ul class="remarks">
        {losses.map(({ path, line, column, message, effect }) => (
          <li key={`${line}:${column} ${path} ${message}`}>
            <small>
              line {line}:{column}
            </small>{' '}
            <code dir="auto">{path}</code>{' '}
            <span dir="auto">{effect === 'changed' ? message : withoutVerdict(message)}</span>
          </li>
        ))}
      </ul>
    </details>
  )
}

/** Most lines of a list that is open at first. */
const maxOpen = 12
