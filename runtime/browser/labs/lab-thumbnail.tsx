import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { LabProject } from '../../../src/client/patchbay.ts'
import { MapPicture } from '../canvas/map-picture.tsx'
import { client } from '../state/client.ts'
import { isAway } from '../state/follow-feed.ts'
import { LabMaps } from './lab-maps.ts'

/** Beyond the list: a list that is shown again has its pictures at once. */
const maps = new LabMaps(client)

/** How far from the window a card gets its picture. */
const nearBy = '200px 0px'

/** The map of a lab in its card, read when the card comes into view. */
export function LabThumbnail({ lab: { project_id, revision, counts } }: { lab: LabProject }) {
  const place = useRef<HTMLDivElement>(null)
  const isNear = useSignal(false)
  const map = useSignal(maps.known(project_id))
  useEffect(() => {
    const observer = new IntersectionObserver(
      (seen) => {
        isNear.value = seen.at(-1)?.isIntersecting === true
      },
      { rootMargin: nearBy },
    )
    if (place.current !== null) observer.observe(place.current)
    return () => observer.disconnect()
  }, [])
  // An older compute does not say how many there are, and a project that only computes have has no map.
  const hasNodes = counts !== undefined && counts.nodes > 0
  const isWanted = isNear.value && hasNodes && !isAway.value
  useEffect(() => {
    if (!isWanted) return
    const over = new AbortController()
    void maps.read({ project_id, revision }, over.signal).then((read) => {
      map.value = read
    })
    return () => over.abort()
  }, [isWanted, revision])
  return <div ref={place}>{hasNodes && <MapPicture map={map.value} hasStates={false} />}</div>
}
