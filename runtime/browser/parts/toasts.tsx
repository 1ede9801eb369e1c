import { dismiss, notices } from '../state/notices.ts'
import { Icon } from './icon.tsx'

/** The messages at the edge of the page. */
export const Toasts = () => (
  <div class="toasts" role="status" aria-live="polite">
    {notices.value.map(({ id, kind, text, actions }) => (
      <div class={`toast is-${kind}`} key={id}>
        <span dir="auto">{text}</span>
        {actions.map(({ verb, run }) => (
          <button
            key={verb}
            type="button"
            onClick={() => {
              dismiss(id)
              run()
            }}
          >
            {verb}
          </button>
        ))}
        <button type="button" class="is-quiet" aria-label="Close this message" onClick={() => dismiss(id)}>
          <Icon name="close" />
        </button>
      </div>
    ))}
  </div>
)
