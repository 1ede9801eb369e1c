import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { AccessToken, NewAccessToken } from '../../../src/client/patchbay.ts'
import { ActionDialog } from '../parts/action-dialog.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Icon } from '../parts/icon.tsx'
import { client } from '../state/client.ts'
import { isAdministrator } from '../state/session.ts'
import { Secret } from './computes-screen.tsx'
import { DeclaredForm } from './declared-form.tsx'

/** The credentials that were made at the service: a new one is shown once, and each can be revoked. */
export function TokensScreen() {
  const tokens = useSignal<readonly AccessToken[] | undefined>(undefined)
  const made = useSignal<NewAccessToken | undefined>(undefined)
  const gone = useSignal<AccessToken | undefined>(undefined)
  const isMaking = useSignal(false)
  const fault = useSignal('')
  const read = () =>
    client
      .call('GET /v2/tokens')
      .then((it) => {
        tokens.value = it
      })
      .catch((error: unknown) => {
        fault.value = error instanceof Error ? error.message : String(error)
      })
  useEffect(() => {
    if (isAdministrator()) void read()
  }, [])
  const close = () => {
    made.value = undefined
    gone.value = undefined
    isMaking.value = false
  }
  if (!isAdministrator()) return <p class="muted">Tokens need the role admin.</p>
  return (
    <>
      <div class="labs-head">
        <h2>Tokens</h2>
        <span class="spacer" />
        <button
          type="button"
          class="is-main"
          disabled={tokens.value === undefined}
          onClick={() => {
            isMaking.value = true
          }}
        >
          <Icon name="plus" /> New token
        </button>
      </div>
      {fault.value !== '' && <p dir="auto">{fault.value}</p>}
      {tokens.value?.length === 0 && (
        <p class="muted">No tokens were made here. Those of the configuration are not in this list.</p>
      )}
      {tokens.value !== undefined && tokens.value.length > 0 && (
        <table>
          <thead>
            <tr>
              {['Name', 'Rights', 'Labs', 'Ends with', 'Made', 'Expires'].map((it) => (
                <th scope="col" key={it}>
                  {it}
                </th>
              ))}
              <th scope="col">
                <span class="hidden">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {tokens.value.map((token) => (
              <tr key={token.token_id}>
                <td>
                  <bdi>{token.name}</bdi>
                </td>
                <td>{token.purpose === 'join' ? `join ${token.compute_id ?? 'as any compute'}` : token.role}</td>
                <td>{token.projects?.join(', ') ?? 'all'}</td>
                <td>
                  <code>…{token.last_characters}</code>
                </td>
                <td class="actions">{dayOf(token.created_at)}</td>
                <td class="actions">{token.expires_at === null ? 'never' : dayOf(token.expires_at)}</td>
                <td class="actions">
                  <button
                    type="button"
                    class="is-quiet"
                    aria-label={`Revoke ${token.name}`}
                    onClick={() => {
                      gone.value = token
                    }}
                  >
                    <Icon name="trash" />
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {isMaking.value && (
        <DeclaredForm
          title="New token"
          schema="AccessTokenCreate"
          members={['name', 'role', 'projects', 'expires_in_s']}
          verb="Make"
          values={{}}
          onSend={async (body) => {
            made.value = await client.call('POST /v2/tokens', { body: body as never })
            await read()
          }}
          onClose={() => {
            isMaking.value = false
          }}
        />
      )}
      {made.value !== undefined && (
        <Dialog title={`The token ${made.value.name}`} onClose={close}>
          <p>Copy it now: it is not shown again.</p>
          <Secret text={made.value.token} what="the token" />
          <div class="row form-actions">
            <button type="button" class="is-main" onClick={close}>
              Done
            </button>
          </div>
        </Dialog>
      )}
      {gone.value !== undefined && (
        <ActionDialog
          title="Revoke the token?"
          verb="Revoke"
          isDanger
          onSend={async () => {
            await client.call('DELETE /v2/tokens/{token_id}', { params: { token_id: gone.value?.token_id ?? '' } })
            await read()
          }}
          onClose={close}
        >
          <p>
            Who uses{' '}
            <b>
              <bdi>{gone.value.name}</bdi>
            </b>{' '}
            is no longer let in, at once.
          </p>
        </ActionDialog>
      )}
    </>
  )
}

const dayOf = (time: string): string =>
  new Date(time).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' })
