import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { PatchbayError } from '../../../src/client/patchbay.ts'
import { client, logIn, recognize } from '../state/client.ts'
import { messageOf } from '../state/notices.ts'
import { labPath, leaveLink } from '../state/route.ts'

/** Shown for the link of a student: signs in by its token, and goes on to the lab of it. */
export function StudentLink({ token }: { token: string }) {
  const failure = useSignal<unknown>(undefined)
  const enter = () => {
    failure.value = undefined
    labOf(token).then(leaveLink, (error: unknown) => {
      failure.value = error
    })
  }
  useEffect(enter, [token])
  const { value: error } = failure
  const isRefused = error instanceof PatchbayError && error.status === 401
  return (
    <main class="ended">
      <h1>Patchbay</h1>
      {error === undefined ? (
        <p role="status">Opening the lab …</p>
      ) : (
        <p role="alert" dir="auto">
          {isRefused ? 'This link is no longer valid. Ask your teacher for a new one.' : messageOf(error)}
        </p>
      )}
      {error !== undefined && !isRefused && (
        <button type="button" class="is-main" autofocus onClick={enter}>
          Try again
        </button>
      )}
    </main>
  )
}

/** Signs in; the address of the lab of the token, or of the list of labs where it has several. */
async function labOf(token: string): Promise<string> {
  try {
    await logIn({ token })
  } catch (error) {
    if (!(error instanceof PatchbayError) || error.status !== 404) throw error
    // The service asks nobody who they are, so that it tells everybody whose token that is.
    await recognize()
    const [, id] = token.split('_')
    const classes = await client.call('GET /v2/classes')
    const own = classes.flatMap((it) => it.students).find((it) => it.token?.token_id === id)
    return own === undefined ? '#/' : labPath(own.project)
  }
  const [lab, ...others] = await client.call('GET /v2/projects')
  return lab === undefined || others.length > 0 ? '#/' : labPath(lab.name)
}
