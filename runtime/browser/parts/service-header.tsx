import { logOut } from '../state/client.ts'
import { isAway } from '../state/follow-feed.ts'
import { notifyError } from '../state/notices.ts'
import { route } from '../state/route.ts'
import { hasAllLabs, isAdministrator, session } from '../state/session.ts'
import { ThemeButton } from './theme-button.tsx'

const screens = [
  { screen: 'labs', title: 'Labs', isShown: () => true },
  { screen: 'images', title: 'Images', isShown: hasAllLabs },
  { screen: 'computes', title: 'Computes', isShown: hasAllLabs },
  { screen: 'tokens', title: 'Tokens', isShown: isAdministrator },
  { screen: 'classes', title: 'Classes', isShown: isAdministrator },
  { screen: 'doctor', title: 'Doctor', isShown: hasAllLabs },
  { screen: 'settings', title: 'Settings', isShown: () => true },
] as const

/** The head of the screens that belong to no lab. */
export const ServiceHeader = () => (
  <>
    <header class="toolbar">
      <h1>
        <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
          <path d="M9 22C9 12 23 20 23 10" />
          <circle cx="9" cy="22" r="3.500" />
          <circle cx="23" cy="10" r="3.500" />
        </svg>
        Patchbay
      </h1>
      <nav class="screens" aria-label="Screens">
        {screens
          .filter(({ isShown }) => isShown())
          .map(({ screen, title }) => (
            <a
              key={screen}
              class="button is-quiet"
              href={screen === 'labs' ? '#/' : `#/${screen}`}
              aria-current={route.value.screen === screen ? 'page' : undefined}
            >
              {title}
            </a>
          ))}
      </nav>
      <span class="spacer" />
      <a class="button is-quiet" href="/docs">
        Reference
      </a>
      {session.value?.expires_at != null && (
        <button type="button" class="is-quiet" onClick={() => void logOut().catch(notifyError)}>
          Sign out {session.value.name}
          {session.value.organization !== undefined && ` (${session.value.organization})`}
        </button>
      )}
      <ThemeButton />
    </header>
    {isAway.value && (
      <p class="away" role="status">
        The service does not answer. Trying again …
      </p>
    )}
  </>
)
