import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Compute, Diagnosis } from '../../../src/client/patchbay.ts'
import { CopyText } from '../parts/copy-text.tsx'
import { ErrorMessage } from '../parts/error-message.tsx'
import { diagnosisAt, doctorPath } from '../state/diagnosis.ts'
import { messageOf, notifyError } from '../state/notices.ts'
import { listComputes } from './computes.ts'

/** What the doctor finds, on this machine and on each compute. */
export function DoctorScreen() {
  const computes = useSignal<readonly Compute[]>([])
  useEffect(() => {
    listComputes()
      .then((all) => {
        computes.value = all.filter((compute) => compute.connected)
      })
      .catch(notifyError)
  }, [])
  return (
    <>
      <div class="labs-head">
        <h2>Doctor</h2>
      </div>
      <DoctorOf path="/v2/compute/doctor" title="This service" />
      {computes.value
        .filter((it) => it.compute_id !== 'local')
        .map((compute) => (
          <DoctorOf key={compute.compute_id} path={doctorPath(compute)} title={compute.name} />
        ))}
    </>
  )
}

const order = { error: 0, warning: 1, ok: 2 } as const

function DoctorOf({ path, title }: { path: string; title: string }) {
  const found = useSignal<Diagnosis | undefined>(undefined)
  const failure = useSignal('')
  const look = async () => {
    found.value = undefined
    failure.value = ''
    try {
      found.value = await diagnosisAt(path)
    } catch (error) {
      failure.value = messageOf(error)
    }
  }
  useEffect(() => void look(), [path])
  const checks = found.value?.checks.toSorted((a, b) => order[a.status] - order[b.status])
  return (
    <section class="doctor">
      <div class="row">
        <h3>
          <bdi>{title}</bdi>
        </h3>
        <span class="spacer" />
        <button type="button" disabled={found.value === undefined && failure.value === ''} onClick={() => void look()}>
          Check again
        </button>
      </div>
      <ErrorMessage text={failure.value} />
      {checks === undefined && failure.value === '' && <p class="muted">Checking …</p>}
      <ul>
        {checks?.map(({ name, status, found: text, fix }) => (
          <li key={`${name} ${text}`} class={`check is-${status}`}>
            <b>{status}</b>
            <div>
              <span dir="auto">
                {name}: {text}
              </span>
              {fix !== null && <CopyText text={fix} what="the fix" />}
            </div>
          </li>
        ))}
      </ul>
    </section>
  )
}
