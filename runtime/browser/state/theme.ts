import { computed, effect, signal } from '@preact/signals'

export type Theme = 'system' | 'light' | 'dark'
const key = 'patchbay.theme'
const isTheme = (text: string | null): text is Theme => text === 'light' || text === 'dark' || text === 'system'

const stored = localStorage.getItem(key)
/** The colours of the page; kept in this browser. */
export const theme = signal<Theme>(isTheme(stored) ? stored : 'system')

effect(() => {
  localStorage.setItem(key, theme.value)
  document.documentElement.dataset.theme = theme.value
})

const system = matchMedia('(prefers-color-scheme: dark)')
const isSystemDark = signal(system.matches)
system.addEventListener('change', () => {
  isSystemDark.value = system.matches
})

/** Whether the page is dark now. */
export const isDark = computed(() => (theme.value === 'system' ? isSystemDark.value : theme.value === 'dark'))

/** The next theme in the order system, light, dark. */
export function nextTheme(): void {
  theme.value = theme.value === 'system' ? 'light' : theme.value === 'light' ? 'dark' : 'system'
}
