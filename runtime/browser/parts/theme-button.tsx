import { nextTheme, theme } from '../state/theme.ts'
import { Icon } from './icon.tsx'

const words = { system: 'as the system', light: 'light', dark: 'dark' } as const

export const ThemeButton = () => (
  <button type="button" class="tool is-quiet" title={`Colours: ${words[theme.value]}`} onClick={nextTheme}>
    <Icon name="theme" />
    <span class="hidden">Colours: {words[theme.value]}</span>
  </button>
)
