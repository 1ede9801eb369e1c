import type { RefObject } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { Point } from '../map/geometry.ts'

/** Distance of what floats from the edges of the window, pixels. */
const margin = 6

/**
 * Shows an element at a point of the window, inside of it, until something beside it is pressed. The result gives the focus back to what
 * had it.
 */
export function useFloating(element: RefObject<HTMLElement | null>, at: Point, close: () => void): () => void {
  const before = useRef(document.activeElement)
  useLayoutEffect(() => {
    const { current } = element
    if (current === null) return
    const { width, height } = current.getBoundingClientRect()
    current.style.left = `${Math.max(margin, Math.min(at.x, innerWidth - width - margin))}px`
    current.style.top = `${Math.max(margin, Math.min(at.y, innerHeight - height - margin))}px`
    current.querySelector('button')?.focus()
    const onPress = ({ target }: PointerEvent) => {
      if (!(target instanceof Node) || !current.contains(target)) close()
    }
    addEventListener('pointerdown', onPress, true)
    addEventListener('blur', close)
    return () => {
      removeEventListener('pointerdown', onPress, true)
      removeEventListener('blur', close)
    }
  }, [at])
  return () => {
    const { current } = before
    if (current instanceof HTMLElement || current instanceof SVGElement) current.focus()
  }
}

/** The place in a list, -1 for the last, to which a key goes from a place; undefined: it goes nowhere. */
export function stepOf(key: string, now: number): number | undefined {
  const steps: Readonly<Record<string, number>> = { ArrowDown: now + 1, ArrowUp: now - 1, Home: 0, End: -1 }
  return steps[key]
}
