import { computed, effect, signal } from '@preact/signals'
import { stored } from './stored.ts'

export const themes = ['system', 'light', 'dark'] as const
export type Theme = (typeof themes)[number]

/** The colours of the page. */
export const theme = stored<Theme>('theme', themes)

effect(() => {
  document.documentElement.dataset.theme = theme.value
})

const system = matchMedia('(prefers-color-scheme: dark)')
const isSystemDark = signal(system.matches)
system.addEventListener('change', () => {
  isSystemDark.value = system.matches
})

/** Whether the page is dark now. */
export const isDark = computed(() => (theme.value === 'system' ? isSystemDark.value : theme.value === 'dark'))

/** The next theme in the order of `themes`. */
export function nextTheme(): void {
  theme.value = themes[(themes.indexOf(theme.value) + 1) % themes.length] ?? 'system'
}
