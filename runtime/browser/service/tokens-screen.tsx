import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { limitsText } from '../../../src/client/limits-text.ts'
import type { AccessToken, NewAccessToken } from '../../../src/client/patchbay.ts'
import { PatchbayError } from '../../../src/client/patchbay-error.ts'
import { ActionDialog } from '../parts/action-dialog.tsx'
import { CopyText } from '../parts/copy-text.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { ErrorMessage } from '../parts/error-message.tsx'
import { Icon } from '../parts/icon.tsx'
import { IconButton } from '../parts/icon-button.tsx'
import { OpenService } from '../parts/open-service.tsx'
import { StackedTable } from '../parts/stacked-table.tsx'
import { timeText } from '../parts/time-text.ts'
import { client } from '../state/client.ts'
import { messageOf } from '../state/notices.ts'
import { isAdministrator } from '../state/session.ts'
import { DeclaredForm } from './declared-form.tsx'

const [hour, day] = [3600, 86_400]
/** Lifetimes of a token to choose from, s. */
const lifetimes = { '8 hours': 8 * hour, '1 day': day, '1 week': 7 * day, '30 days': 30 * day, '1 year': 365 * day }

/** The credentials that were made at the service: a new one is shown once, and each can be revoked. */
export function TokensScreen() {
  const tokens = useSignal<readonly AccessToken[] | undefined>(undefined)
  const made = useSignal<NewAccessToken | undefined>(undefined)
  const gone = useSignal<AccessToken | undefined>(undefined)
  const isMaking = useSignal(false)
  const failure = useSignal('')
  /** The service has no tokens, as it cannot read their file: that is not a failure of the page. */
  const isWithout = useSignal(false)
  const read = () =>
    client
      .call('GET /v2/tokens')
      .then((list) => {
        tokens.value = list
        failure.value = ''
      })
      .catch((error: unknown) => {
        failure.value = messageOf(error)
        isWithout.value = error instanceof PatchbayError && error.status === 404
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
      {isWithout.value ? <p class="muted">{failure.value}</p> : <ErrorMessage text={failure.value} />}
      {tokens.value !== undefined && (
        <OpenService>
          Who reaches it may do everything. To let others in, make a token with the role admin, and start the service
          again by this line. Then every client needs a token.
        </OpenService>
      )}
      {tokens.value?.length === 0 && (
        <p class="muted">No tokens have been created here. Tokens from the configuration are not listed.</p>
      )}
      {tokens.value !== undefined && tokens.value.length > 0 && (
        <StackedTable
          columns={['Name', 'Rights', 'Labs', 'Ends with', 'Created', 'Expires']}
          rows={tokens.value.map((token) => ({
            key: token.token_id,
            cells: [
              <bdi>{token.name}</bdi>,
              rightsOf(token),
              token.purpose === 'join' ? 'none' : (token.projects?.join(', ') ?? 'all'),
              <code>…{token.last_characters}</code>,
              <span class="actions">{timeText(token.created_at)}</span>,
              <span class="actions">{token.expires_at === null ? 'never' : timeText(token.expires_at)}</span>,
            ],
            actions: (
              <IconButton
                icon="trash"
                title={`Revoke ${token.name}`}
                onClick={() => {
                  gone.value = token
                }}
              />
            ),
          }))}
        />
      )}
      {isMaking.value && (
        <DeclaredForm
          title="New token"
          schema="AccessTokenCreate"
          members={['name', 'role', 'projects', 'limits', 'expires_in_s']}
          words={{ expires_in_s: { title: 'Expires after', values: lifetimes } }}
          verb="Create"
          values={{ role: 'operate' }}
          onSend={async (body) => {
            made.value = await client.call('POST /v2/tokens', { body: { role: 'operate', ...body } as never })
            await read()
          }}
          onClose={() => {
            isMaking.value = false
          }}
        />
      )}
      {made.value !== undefined && (
        <Dialog title={`The token ${made.value.name}`} isFirm onClose={close}>
          <p>Copy it now: it will not be shown again.</p>
          <CopyText text={made.value.token} what="the token" />
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
            can no longer sign in, from now on.
          </p>
        </ActionDialog>
      )}
    </>
  )
}

function rightsOf({ purpose, compute_id, role, limits }: AccessToken): string {
  if (purpose === 'join') return `join ${compute_id ?? 'as any compute'}`
  const text = limitsText(limits ?? {})
  return text === '' ? role : `${role}, at most ${text} a lab`
}
