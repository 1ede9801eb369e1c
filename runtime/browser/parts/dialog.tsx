import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'

interface DialogProps {
  readonly title: string
  readonly onClose: () => void
  readonly children: ComponentChildren
  /** Hides the title, where the content says it. */
  readonly isPlain?: boolean
  readonly isWide?: boolean
  /** It shows something that is not shown again: a press beside it does not close it. */
  readonly isFirm?: boolean
}

/** A modal dialog: Escape and a click beside it close it, and the focus returns to where it was. */
export function Dialog({ title, onClose, children, isPlain = false, isWide = false, isFirm = false }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null)
  useLayoutEffect(() => {
    const before = document.activeElement
    element.current?.showModal()
    const goBack = () => {
      const isFree = document.activeElement === null || document.activeElement === document.body
      if (isFree && (before instanceof HTMLElement || before instanceof SVGElement)) before.focus()
    }
    // The dialog is still there when this is called, and while it is nothing beside it takes the focus.
    return () => queueMicrotask(goBack)
  }, [])
  return (
    <dialog
      ref={element}
      class={`dialog${isPlain ? ' is-plain' : ''}${isWide ? ' is-wide' : ''}`}
      aria-label={title}
      onClose={onClose}
      onKeyDown={(event) => {
        event.stopPropagation()
        if (event.key !== 'Escape') return
        event.preventDefault()
        onClose()
      }}
      onPointerDown={(event) => {
        const { target } = event
        if (target instanceof Element && target === element.current && !isFirm && isBeside(event, target)) onClose()
      }}
    >
      {!isPlain && <h2>{title}</h2>}
      {children}
    </dialog>
  )
}

/** Whether the pointer is on the backdrop: that has the same target as the margins within the dialog. */
function isBeside({ clientX, clientY }: PointerEvent, dialog: Element): boolean {
  const { left, right, top, bottom } = dialog.getBoundingClientRect()
  return clientX < left || clientX > right || clientY < top || clientY > bottom
}
