import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { ignore } from '../../../src/lib/async/ignore.ts'
import { client } from '../state/client.ts'

/** The name of a compute; its id where there is no compute of it, or the user may not see it. */
export function ComputeName({ id }: { id: string }) {
  const name = useSignal(id)
  useEffect(() => {
    let isWanted = true
    name.value = id
    client
      .call('GET /v2/computes/{compute_id}', { params: { compute_id: id } })
      .then((compute) => {
        if (isWanted) name.value = compute.name
      })
      .catch(ignore('its id is shown'))
    return () => {
      isWanted = false
    }
  }, [id])
  return (
    <span class="muted">
      {' · on '}
      <bdi>{name.value}</bdi>
    </span>
  )
}
