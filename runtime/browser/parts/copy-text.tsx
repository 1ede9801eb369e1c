import { CopyButton } from './copy-button.tsx'

/** A text to be copied; `what` is its name. */
export const CopyText = ({ text, what }: { text: string; what: string }) => (
  <p class="fix">
    <code>{text}</code>
    <CopyButton text={text} what={what} />
  </p>
)
