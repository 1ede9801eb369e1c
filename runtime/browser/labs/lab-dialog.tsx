import { useSignal } from '@preact/signals'
import type { LabProject } from '../../../src/client/patchbay.ts'
import type { ImportOptions } from '../importing/file-import.ts'
import { ActionDialog } from '../parts/action-dialog.tsx'
import { Loaded } from '../parts/loaded.tsx'
import { TextField } from '../parts/text-field.tsx'
import { labPath } from '../state/route.ts'
import type { LabList } from './lab-list.ts'

// Not at once: a lab has such a dialog, too, and no examples.
const gallery = () => import('./on-demand.ts').then((module) => module.Gallery)

/** A dialog of the list of labs. */
export type OpenDialog =
  | { readonly kind: 'new' }
  | { readonly kind: 'rename' | 'delete' | 'duplicate' | 'export'; readonly lab: LabProject }

interface DialogProps {
  readonly open: OpenDialog
  readonly list: LabList
  /** Makes a lab of the file of an example. */
  readonly onExample?: (file: File, from: ImportOptions) => void
  readonly onClose: () => void
}

/** Asks for a name, or whether a lab is to be stopped or deleted. */
export function LabDialog({ open, list, onExample, onClose }: DialogProps) {
  const given = open.kind === 'new' ? '' : open.kind === 'duplicate' ? `${open.lab.name} copy` : open.lab.name
  const name = useSignal(given)
  const send = async () => {
    const wanted = name.value.trim()
    if (open.kind === 'new') location.hash = labPath((await list.create(wanted)).name)
    else if (open.kind === 'rename') await list.rename(open.lab, wanted)
    else if (open.kind === 'duplicate') await list.duplicate(open.lab, wanted)
    else if (open.kind === 'export') await list.stopAndExport(open.lab)
    else await list.remove(open.lab)
  }
  const words = {
    new: ['New lab', 'Create'],
    rename: ['Rename the lab', 'Rename'],
    duplicate: ['Duplicate the lab', 'Duplicate'],
    export: ['Stop the lab?', 'Stop and export'],
    delete: ['Delete the lab?', 'Delete'],
  } as const
  const [title, verb] = words[open.kind]
  const examples = open.kind === 'new' && onExample !== undefined && (
    <section class="examples">
      <h3>From an example</h3>
      <Loaded
        load={gallery}
        props={{
          onChoose: (file, imagesFrom) => onExample(file, { imagesFrom, name: name.value.trim() || undefined }),
        }}
      />
    </section>
  )
  return (
    <ActionDialog
      title={title}
      verb={verb}
      isDanger={open.kind === 'delete'}
      onSend={send}
      onClose={onClose}
      below={examples || undefined}
    >
      {open.kind === 'delete' || open.kind === 'export' ? (
        <p>
          <bdi>
            <b>{open.lab.name}</b>
          </bdi>{' '}
          {open.kind === 'delete'
            ? 'is deleted with its nodes and files. This cannot be undone.'
            : 'is running. An export contains the files of stopped nodes: all nodes are stopped first.'}
        </p>
      ) : (
        <TextField id="lab-name" title="Name" value={name} />
      )}
    </ActionDialog>
  )
}
