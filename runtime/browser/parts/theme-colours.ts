/**
 * Reads colours of the style sheet, such as `panel`, for pictures that cannot look them up; `scheme`: of that scheme, whatever the theme is.
 * `end` must be called when all are read.
 */
export function themeColours(scheme?: 'light'): { readonly of: (name: string) => string; readonly end: () => void } {
  const probe = document.createElement('i')
  if (scheme !== undefined) probe.style.colorScheme = scheme
  document.body.append(probe)
  const known = new Map<string, string>()
  return {
    of(name) {
      const before = known.get(name)
      if (before !== undefined) return before
      probe.style.color = `var(--${name})`
      const colour = getComputedStyle(probe).color
      known.set(name, colour)
      return colour
    },
    end: () => probe.remove(),
  }
}
