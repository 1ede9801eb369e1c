import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { notifyError } from '../state/notices.ts'

interface LoadedProps<P> {
  readonly load: () => Promise<ComponentType<P>>
  readonly props: P
}

/** A part of the page that is loaded when it is shown first. */
export function Loaded<P extends object>({ load, props }: LoadedProps<P>) {
  const [View, setView] = useState<ComponentType<P>>()
  useEffect(() => {
    load()
      .then((it) => setView(() => it))
      .catch(notifyError)
  }, [])
  return View === undefined ? null : <View {...props} />
}
