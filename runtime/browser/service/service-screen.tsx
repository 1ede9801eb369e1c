import { useEffect } from 'preact/hooks'
import { ClassesScreen } from '../classes/classes-screen.tsx'
import { ServiceHeader } from '../parts/service-header.tsx'
import type { ServiceScreenName } from '../state/route.ts'
import { ComputesScreen } from './computes-screen.tsx'
import { DoctorScreen } from './doctor-screen.tsx'
import { ImagesScreen } from './images-screen.tsx'
import { SettingsScreen } from './settings-screen.tsx'
import { TokensScreen } from './tokens-screen.tsx'

const screens = {
  images: ['Images', ImagesScreen],
  computes: ['Computes', ComputesScreen],
  tokens: ['Tokens', TokensScreen],
  classes: ['Classes', ClassesScreen],
  doctor: ['Doctor', DoctorScreen],
  settings: ['Settings', SettingsScreen],
} as const

/** A screen about the service. */
export function ServiceScreen({ screen }: { screen: ServiceScreenName }) {
  const [title, Content] = screens[screen]
  useEffect(() => {
    document.title = `${title} – Patchbay`
  }, [title])
  return (
    <div class="labs">
      <ServiceHeader />
      <main>
        <Content />
      </main>
    </div>
  )
}
