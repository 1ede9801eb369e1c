import { useSignal } from '@preact/signals'
import { useId } from 'preact/hooks'
import type { CallName } from '../../../src/client/patchbay.ts'
import { ErrorMessage } from '../parts/error-message.tsx'
import { client } from '../state/client.ts'
import { messageOf } from '../state/notices.ts'
import { freeImageName } from './free-image-name.ts'
import { imagesOf } from './images.ts'

type DiskKind<T> = T extends `POST /v2/compute/${infer K}/img` ? K : never

/** Megabytes (MiB) of a gigabyte. */
const mbOfGb = 1024

interface NewDiskProps {
  /** The kind of the node. */
  readonly kind: string
  /** The name of the file without its extension, unless it is taken. */
  readonly name: string
  /** Takes the image that was made. */
  readonly onMade: (path: string) => void
}

/** Makes an empty disk among the images. */
export function NewDisk({ kind, name, onMade }: NewDiskProps) {
  const id = useId()
  const size = useSignal('1')
  const isMaking = useSignal(false)
  const failure = useSignal('')
  const make = async () => {
    // The button is disabled only when it is drawn again, which may be after a second press.
    if (isMaking.value) return
    const mb = Math.round(Number(size.value) * mbOfGb)
    failure.value = mb >= 1 ? '' : 'Expected a size such as 1.'
    if (failure.value !== '') return
    isMaking.value = true
    try {
      const path = freeImageName(name, await imagesOf(kind))
      const body = { path, format: 'qcow2', size: mb } as const
      await client.call(`POST /v2/compute/${kind as DiskKind<CallName>}/img`, { body })
      onMade(path)
    } catch (error) {
      failure.value = messageOf(error)
    } finally {
      isMaking.value = false
    }
  }
  return (
    <div class="new-disk">
      <div class="row">
        <label for={id}>New empty disk</label>
        <input
          id={id}
          type="number"
          step="any"
          value={size.value}
          onInput={(event) => {
            size.value = event.currentTarget.value
            failure.value = ''
          }}
          onKeyDown={(event) => {
            // It would send the form around it.
            if (event.key !== 'Enter') return
            event.preventDefault()
            void make()
          }}
        />
        GB
        <button type="button" disabled={isMaking.value} onClick={() => void make()}>
          Create
        </button>
      </div>
      <ErrorMessage text={failure.value} />
    </div>
  )
}
