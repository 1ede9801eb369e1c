import type { EventView } from '../state/event-text.ts'

/** The last events, the newest first. */
export const EventList = ({ events }: { events: readonly EventView[] }) => (
  <details>
    <summary>Events</summary>
    {events.length === 0 && <p class="muted">None since you opened this page.</p>}
    <ul class="events">
      {events.toReversed().map(({ id, at, text, by }) => (
        <li key={id}>
          <time class="muted">{new Date(at).toLocaleTimeString()}</time>
          <span>
            <bdi>{text}</bdi>
            {by !== undefined && (
              <span class="muted">
                {' '}
                by <bdi>{by}</bdi>
              </span>
            )}
          </span>
        </li>
      ))}
    </ul>
  </details>
)
