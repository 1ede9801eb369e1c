import { type Signal, useSignal } from '@preact/signals'
import { mayEdit } from '../state/session.ts'

/** What makes an element a place on which files are dropped. */
export interface FileDrop {
  /** Whether files are above it. */
  readonly isOver: Signal<boolean>
  readonly handlers: {
    readonly onDragOver: (event: DragEvent) => void
    readonly onDragLeave: (event: DragEvent) => void
    readonly onDrop: (event: DragEvent) => void
  }
}

/** Takes files that are dropped on an element, where the user may edit. */
export function useFileDrop(onFiles: (files: readonly File[]) => void): FileDrop {
  const isOver = useSignal(false)
  const hasFiles = (event: DragEvent) => mayEdit() && event.dataTransfer?.types.includes('Files') === true
  return {
    isOver,
    handlers: {
      onDragOver(event) {
        if (!hasFiles(event)) return
        event.preventDefault()
        isOver.value = true
      },
      onDragLeave(event) {
        const { currentTarget, relatedTarget } = event
        if (!(currentTarget as Element).contains(relatedTarget as Node | null)) isOver.value = false
      },
      onDrop(event) {
        isOver.value = false
        if (!hasFiles(event)) return
        event.preventDefault()
        onFiles([...(event.dataTransfer?.files ?? [])])
      },
    },
  }
}
