import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { notifyError } from '../state/notices.ts'

interface LoadedProps<P> {
  /** The same function each time, so that a part that is loaded is shown at once. */
  readonly load: () => Promise<ComponentType<P>>
  readonly props: P
}

const views = new WeakMap<() => Promise<unknown>, ComponentType<never>>()

/** A part of the page that is loaded when it is shown first. */
export function Loaded<P extends object>({ load, props }: LoadedProps<P>) {
  const [View, setView] = useState<ComponentType<P> | undefined>(() => views.get(load) as ComponentType<P> | undefined)
  useEffect(() => {
    if (View !== undefined) return
    load()
      .then((it) => {
        views.set(load, it as ComponentType<never>)
        setView(() => it)
      })
      .catch(notifyError)
  }, [])
  return View === undefined ? null : <View {...props} />
}
