import { LabScreen } from './lab/lab-screen.tsx'
import { LabsScreen } from './labs/labs-screen.tsx'
import { Loaded } from './parts/loaded.tsx'
import { Toasts } from './parts/toasts.tsx'
import { route, type ServiceScreenName } from './state/route.ts'
import { session } from './state/session.ts'

/** The page: the screen of its address, or the sign-in. */
export const App = () => (
  <>
    <Screen />
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
