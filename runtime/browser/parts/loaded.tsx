import type { ComponentType } from 'preact'
import { useLayoutEffect, useState } from 'preact/hooks'
import { notifyError } from '../state/notices.ts'

interface LoadedProps<P> {
  /** The same function each time: it stands for the part, which is loaded once. */
  readonly load: () => Promise<ComponentType<P>>
  readonly props: P
}

const views = new WeakMap<() => Promise<unknown>, ComponentType<never>>()

/** Time before a part is asked for again, ms, and how often it is asked for. */
const [retryMs, maxTries] = [1000, 5]

/** A part, also when the connection is lost for a moment. */
async function loadedBy<T>(load: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await load()
    } catch (error) {
      if (tries === maxTries) throw error
      await new Promise((resolve) => setTimeout(resolve, retryMs))
    }
  }
}

/** A part of the page that is loaded when it is shown first. */
export function Loaded<P extends object>({ load, props }: LoadedProps<P>) {
  const [, setLoaded] = useState<() => Promise<unknown>>()
  // The component may be reused for another part. Before the next frame: what is typed meanwhile is for the part.
  useLayoutEffect(() => {
    if (views.has(load)) return
    loadedBy(load)
      .then((view) => {
        views.set(load, view as ComponentType<never>)
        setLoaded(() => load)
      })
      .catch(notifyError)
  }, [load])
  const View = views.get(load) as ComponentType<P> | undefined
  return View === undefined ? null : <View {...props} />
}
