import { useEffect, useMemo } from 'preact/hooks'
import { Dialog } from '../parts/dialog.tsx'
import { saveFile } from '../parts/downloads.ts'
import { ErrorMessage } from '../parts/error-message.tsx'
import { Icon } from '../parts/icon.tsx'
import { sizeText } from '../parts/size-text.ts'
import { labPath } from '../state/route.ts'
import { FileImport, type ImportOptions, type ImportState, type UntrustedPart } from './file-import.ts'
import { givenFiles } from './given-files.ts'
import { ImportResultView, Losses } from './import-result-view.tsx'
import { presentLosses } from './present-losses.ts'

interface ImportProps {
  readonly files: readonly File[]
  readonly options?: ImportOptions | undefined
  /** Takes the lab of a single file. Absent: it is opened. */
  readonly onMade?: (lab: string) => void
  readonly onClose: () => void
}

const openLab = (lab: string): void => {
  location.hash = labPath(lab)
}

/** Makes labs and templates of files, one after the other, and shows which parts were not imported. */
export function ImportDialog({ files, options, onMade, onClose }: ImportProps) {
  const imports = useMemo(() => givenFiles(files).map((given) => new FileImport(given, options)), [files])
  const isRunning = imports.some((it) => it.isRunning)
  const cancel = () => {
    for (const it of imports) it.cancel()
  }
  useEffect(() => {
    void runAll(imports, onMade ?? openLab)
    return cancel
  }, [imports])
  return (
    // A press beside the dialog must not end an upload.
    <Dialog title="Import" isWide onClose={() => isRunning || imports.some(uploads) || onClose()}>
      <ul class="imports">
        {imports.map((it) => (
          <ImportView key={it.file.name} given={it} />
        ))}
      </ul>
      <div class="row form-actions">
        {isRunning ? (
          <button type="button" autofocus onClick={cancel}>
            Cancel
          </button>
        ) : (
          <EndActions imports={imports} onMade={onMade} onClose={onClose} />
        )}
      </div>
    </Dialog>
  )
}

/** Whether an image for a node of the lab is on its way. */
const uploads = ({ result }: FileImport): boolean => result.value?.upload.value?.state.value === 'running'

interface EndProps extends Pick<ImportProps, 'onClose'> {
  readonly imports: readonly FileImport[]
  readonly onMade: ImportProps['onMade'] | undefined
}

/** What can be done when all is imported: the lab of a single file is opened from here. */
function EndActions({ imports: [only, ...others], onMade, onClose }: EndProps) {
  const state = only?.state.value
  const lab = others.length === 0 && state?.step === 'done' && state.made === 'lab' ? state.name : undefined
  return (
    <>
      <button type="button" class={lab === undefined ? 'is-main' : ''} autofocus={lab === undefined} onClick={onClose}>
        Close
      </button>
      {lab !== undefined && (
        <button type="button" class="is-main" autofocus onClick={() => (onMade ?? openLab)(lab)}>
          {onMade === undefined ? 'Open the lab' : 'Use the lab'}
        </button>
      )}
    </>
  )
}

/** Imports all files. Then takes the lab, if there was only one file and all of it was imported. */
async function runAll(imports: readonly FileImport[], onMade: (lab: string) => void): Promise<void> {
  for (const it of imports) await it.run()
  const [only, ...others] = imports
  if (only === undefined || others.length > 0) return
  const missing = only.result.value?.missing.length ?? 0
  if (only.leftOut.value.length + only.notTaken.value.length + missing > 0) return
  const { value: state } = only.state
  if (state.step === 'done' && state.made === 'lab') onMade(state.name)
}

function ImportView({ given }: { given: FileImport }) {
  const { file, leftOut, notTaken, images, labFile, result } = given
  const { value: state } = given.state
  const { value: text } = labFile
  const lost = presentLosses(leftOut.value, result.value?.rows.value ?? [])
  return (
    <li class="import">
      <div class="row">
        <b>
          <bdi>{file.name}</bdi>
        </b>
        <span class="muted">{sizeText(file.size)}</span>
        <span class="spacer" />
        <span role="status">{stateText(state, file.size)}</span>
      </div>
      {state.step === 'sending' && (
        <progress value={state.sent} max={Math.max(1, file.size)} aria-label={`Upload of ${file.name}`} />
      )}
      {state.step === 'making' && (
        <progress value={state.done} max={Math.max(1, state.total)} aria-label={`Steps of ${file.name}`} />
      )}
      {state.step === 'asking' && <TrustQuestion untrusted={state.untrusted} onAnswer={(it) => given.answer(it)} />}
      <ErrorMessage text={state.step === 'failed' ? state.reason : ''} />
      {state.step === 'done' && state.made === 'lab' && (
        <p class="row">
          <span>
            Lab{' '}
            <a href={labPath(state.name)} dir="auto">
              {state.name}
            </a>
          </span>
          {text !== undefined && (
            <button
              type="button"
              onClick={() => saveFile(`${file.name.replace(/(\.clab)?\.\w+$/, '')}.lab.yaml`, new Blob([text]))}
            >
              <Icon name="download" /> Lab file
            </button>
          )}
        </p>
      )}
      {state.step === 'done' && state.made === 'template' && (
        <p>
          Node type <b dir="auto">{state.name}</b>; it is on the left of every lab.
        </p>
      )}
      {result.value !== undefined && <ImportResultView result={result.value} />}
      {notTaken.value.length > 0 && <p>Left out: {notTaken.value.join(', ')}.</p>}
      {images.value.length > 0 && (
        <details open={state.step === 'failed' || (state.step === 'done' && state.made === 'template')}>
          <summary>{images.value.length === 1 ? 'A required image' : `${images.value.length} required images`}</summary>
          <ul class="remarks">
            {images.value.map(({ image, about }) => (
              <li key={`${image} ${about}`}>
                <b dir="auto">{image}</b> <span dir="auto">{about}</span>
              </li>
            ))}
          </ul>
          <p>
            Upload missing images at <a href="#/images">Images</a>.
          </p>
        </details>
      )}
      <Losses title="Changed" losses={lost.filter(({ effect }) => effect === 'changed')} />
      <Losses title="Left out" losses={lost.filter(({ effect }) => effect === 'left-out')} />
    </li>
  )
}

interface TrustProps {
  readonly untrusted: readonly UntrustedPart[]
  readonly onAnswer: (isTrusted: boolean) => void
}

/** Shows what a file would run and open, and asks whether it may. */
function TrustQuestion({ untrusted, onAnswer }: TrustProps) {
  return (
    <section class="trust" role="alertdialog" aria-label="Do you trust this file?">
      <p>This file would run programs or open files of the computer on which the service runs:</p>
      <ul class="remarks">
        {untrusted.map(({ name, setting, value }) => (
          <li key={`${name} ${setting} ${value}`}>
            <b dir="auto">{name}</b> <span>{setting}</span> <code dir="auto">{value}</code>
          </li>
        ))}
      </ul>
      <p>Import it only if you trust its source.</p>
      <div class="row form-actions">
        <button type="button" autofocus onClick={() => onAnswer(false)}>
          Do not import
        </button>
        <button type="button" class="is-danger" onClick={() => onAnswer(true)}>
          Trust and import
        </button>
      </div>
    </section>
  )
}

function stateText(state: ImportState, size: number): string {
  switch (state.step) {
    case 'waiting':
      return 'waits'
    case 'asking':
      return 'is not trusted'
    case 'reading':
      return 'is read …'
    case 'sending':
      return state.sent < size ? `${sizeText(state.sent)} of ${sizeText(size)}` : 'sent; the service is reading it …'
    case 'making':
      return `step ${state.done} of ${state.total}`
    case 'done':
      return 'imported'
    case 'failed':
      return 'refused'
    case 'cancelled':
      return 'cancelled'
  }
}
