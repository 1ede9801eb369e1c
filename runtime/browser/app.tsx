import { ignore } from '../../src/lib/async/ignore.ts'
import { LabScreen } from './lab/lab-screen.tsx'
import { LabsScreen } from './labs/labs-screen.tsx'
import { Loaded } from './parts/loaded.tsx'
import { Toasts } from './parts/toasts.tsx'
import { isLinkFollowed, linkToken, route, type ServiceScreenName } from './state/route.ts'
import { session } from './state/session.ts'

/** Longest time until what is loaded ahead is asked for, ms. */
const idleMs = 2000

/** Loads what opens at a press, when the page has nothing else to do: a letter that is typed meanwhile would be lost. */
export function loadAhead(): void {
  const load = () => {
    const parts = [import('./labs/on-demand.ts'), import('./lab/on-demand.ts')]
    for (const part of parts) part.catch(ignore('it is loaded again when it is wanted'))
  }
  if ('requestIdleCallback' in globalThis) requestIdleCallback(load, { timeout: idleMs })
  else setTimeout(load, idleMs)
}

/** The page: the screen of its address, or the sign-in. */
export const App = () => (
  <>
    {!isLinkFollowed.value && <Screen />}
    {linkToken.value !== undefined && <Loaded load={studentLink} props={{ token: linkToken.value }} />}
    <Toasts />
  </>
)

const serviceScreen = () => import('./labs/on-demand.ts').then((module) => module.ServiceScreen)

/** The screens about the service; their part of the page is loaded with the first of them. */
const ServiceScreen = (props: { screen: ServiceScreenName }) => <Loaded load={serviceScreen} props={props} />

const consoleScreen = () => import('./lab/on-demand.ts').then((module) => module.ConsoleScreen)
/** A console in a window of its own. */
const ConsoleScreen = (props: { lab: string; node: string }) => <Loaded load={consoleScreen} props={props} />

const signIn = () => import('./labs/on-demand.ts').then((module) => module.SignIn)

const studentLink = () => import('./labs/on-demand.ts').then((module) => module.StudentLink)

function Screen() {
  if (session.value === undefined) return null
  if (session.value === null) return <Loaded load={signIn} props={{}} />
  const wanted = route.value
  if (wanted.screen === 'labs') return <LabsScreen />
  if (wanted.screen !== 'lab') return <ServiceScreen screen={wanted.screen} />
  if (wanted.console === true && wanted.node !== undefined)
    return <ConsoleScreen key={`${wanted.lab}/${wanted.node}`} lab={wanted.lab} node={wanted.node} />
  return <LabScreen key={wanted.lab} name={wanted.lab} />
}
