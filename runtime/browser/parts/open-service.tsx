import type { ComponentChildren } from 'preact'
import { isOpen, session } from '../state/session.ts'
import { CopyText } from './copy-text.tsx'

/** What is so at a service that asks nobody for a token, and the line that starts it as one that does; nothing elsewhere. */
export function OpenService({ children }: { children: ComponentChildren }) {
  const { value } = session
  if (!isOpen(value)) return null
  return (
    <section class="open-service">
      <p>This service asks nobody for a token. {children}</p>
      {value?.start_line !== undefined && <CopyText text={value.start_line} what="the line" />}
    </section>
  )
}
