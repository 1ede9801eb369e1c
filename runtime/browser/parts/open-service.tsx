import type { ComponentChildren } from 'preact'
import { CopyText } from './copy-text.tsx'

/** What is so at a service that asks nobody for a token, and the line that starts one that does. */
export function OpenService({ children }: { children: ComponentChildren }) {
  const line = `patchbay serve --host 0.0.0.0 --port ${location.port || '80'}`
  return (
    <section class="muted open-service">
      <p>{children}</p>
      <CopyText text={line} what="the line" />
    </section>
  )
}
