import { effect, type Signal, signal } from '@preact/signals'

/** A choice of the user among some values, kept in this browser. The first value is the default. */
export function stored<T extends string>(name: string, values: readonly [T, ...T[]]): Signal<T> {
  const key = `patchbay.${name}`
  const found = values.find((it) => it === localStorage.getItem(key))
  const chosen = signal(found ?? values[0])
  effect(() => localStorage.setItem(key, chosen.value))
  return chosen
}
