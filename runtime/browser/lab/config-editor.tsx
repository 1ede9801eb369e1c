import { useComputed, useSignal } from '@preact/signals'
import { useEffect, useId } from 'preact/hooks'
import type { LabNode } from '../../../src/client/patchbay.ts'
import type { ConfigDraft } from '../editing/config-draft.ts'
import type { LabWindow } from '../editing/lab-window.ts'
import { differenceOf } from '../forms/difference.ts'
import { counted } from '../parts/counted.ts'
import { Dialog } from '../parts/dialog.tsx'
import { ErrorMessage } from '../parts/error-message.tsx'
import { IconButton } from '../parts/icon-button.tsx'
import { RadioGroup } from '../parts/radio-group.tsx'
import { mayEdit } from '../state/session.ts'

interface ConfigEditorProps {
  readonly node: LabNode
  /** Names of the configurations of its kind, the default first. */
  readonly names: readonly string[]
  readonly window: LabWindow
}

/** The configurations of a node, each compared with what is typed. */
export function ConfigEditor({ node, names, window: lab }: ConfigEditorProps) {
  const name = useSignal(names[0] ?? '')
  const isLarge = useSignal(false)
  const title = `Configuration of ${node.name}`
  const text = { node, title, window: lab, name: name.value }
  if (isLarge.value)
    return (
      <Dialog
        title={title}
        isWide
        onClose={() => {
          isLarge.value = false
        }}
      >
        <ConfigText key={name.value} {...text} />
      </Dialog>
    )
  return (
    <div class="config">
      {names.length > 1 && (
        <RadioGroup
          label="Which configuration"
          value={name.value}
          options={names.map((it) => [it, it])}
          onChange={(it) => {
            name.value = it
          }}
        />
      )}
      <ConfigText
        key={name.value}
        {...text}
        onEnlarge={() => {
          isLarge.value = true
        }}
      />
    </div>
  )
}

/** Lines that are shown of a short one, too. */
const leastRows = 16

interface ConfigTextProps {
  readonly node: LabNode
  readonly name: string
  readonly title: string
  readonly window: LabWindow
  /** Shows it in a larger window; absent: this is the larger window. */
  readonly onEnlarge?: () => void
}

function ConfigText({ node, name, title, window: lab, onEnlarge }: ConfigTextProps) {
  const id = useId()
  const draft = lab.draftOf(node, name)
  // Another client may have changed it, or the node has saved it.
  useEffect(() => void draft.read(), [draft, JSON.stringify(node.properties), node.status])
  useEffect(() => () => lab.forgetDraft(node, name), [draft])
  const { saved, text, isChanged, isSaving, failure } = draft
  const lines = text.value.split('\n').length
  return (
    <form
      class="config-text"
      onSubmit={(event) => {
        event.preventDefault()
        void draft.save()
      }}
    >
      <label class="hidden" for={id}>
        {title}
      </label>
      <textarea
        id={id}
        rows={Math.min(24, Math.max(leastRows, lines + 1))}
        spellcheck={false}
        readOnly={!mayEdit()}
        disabled={saved.value === undefined}
        placeholder={saved.value === undefined ? 'Reading …' : 'None yet.'}
        value={text.value}
        onInput={(event) => draft.type(event.currentTarget.value)}
      />
      {node.status !== 'stopped' && <p class="muted">It takes effect when the node starts next.</p>}
      <ErrorMessage text={failure.value} />
      {isChanged.value && <ConfigDifference draft={draft} />}
      <div class="row">
        {isChanged.value && (
          <>
            <button type="submit" class="is-main" disabled={isSaving.value}>
              Save
            </button>
            <button type="button" onClick={() => draft.discard()}>
              Discard
            </button>
          </>
        )}
        <span class="spacer" />
        {onEnlarge !== undefined && <IconButton icon="fit" title="Show it in a larger window" onClick={onEnlarge} />}
      </div>
    </form>
  )
}

const marks = { same: ' ', added: '+', removed: '−', gap: '…' } as const

/** What a save would change. */
function ConfigDifference({ draft: { saved, text } }: { draft: ConfigDraft }) {
  const difference = useComputed(() => differenceOf(saved.value ?? '', text.value)).value
  if (difference === undefined) return <p class="muted">The texts differ too much for a line-by-line view.</p>
  return (
    <div class="difference">
      <p class="muted" role="status">
        {counted(difference.added, 'line')} added, {difference.removed} removed
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is reached by the keyboard */}
      <section tabIndex={0} aria-label="Difference">
        {difference.lines.map(({ kind, text }, index) => (
          <div key={index} class={`is-${kind}`}>
            <span class="sign">{marks[kind]}</span>
            <bdi>{text}</bdi>
          </div>
        ))}
      </section>
    </div>
  )
}
