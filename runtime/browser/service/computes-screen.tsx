import { type ReadonlySignal, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Compute, LabJob, NewAccessToken } from '../../../src/client/patchbay.ts'
import { ignore } from '../../../src/lib/async/ignore.ts'
import { ActionDialog } from '../parts/action-dialog.tsx'
import { CopyText } from '../parts/copy-text.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Icon } from '../parts/icon.tsx'
import { TextField } from '../parts/text-field.tsx'
import { client } from '../state/client.ts'
import { followFeed } from '../state/follow-feed.ts'
import { notifyError } from '../state/notices.ts'
import { isAdministrator } from '../state/session.ts'
import { Table } from '../state/table.ts'
import { listComputes } from './computes.ts'
import { DeclaredForm } from './declared-form.tsx'
import { DrainDialog, DrainView, drainOf } from './drain.tsx'

type Open =
  | { readonly kind: 'add' | 'join' }
  | { readonly kind: 'change' | 'drain' | 'remove'; readonly compute: Compute }

/** The machines of the fleet, with their load. */
export function ComputesScreen() {
  const computes = useComputes()
  const dialog = useSignal<Open | undefined>(undefined)
  const open = (opened: Open) => () => {
    dialog.value = opened
  }
  const close = () => {
    dialog.value = undefined
  }
  const { value: shown } = dialog
  return (
    <>
      <div class="labs-head">
        <h2>Computes</h2>
        <span class="spacer" />
        {isAdministrator() && (
          <>
            <button type="button" onClick={open({ kind: 'add' })}>
              Add by address …
            </button>
            <button type="button" class="is-main" onClick={open({ kind: 'join' })}>
              <Icon name="plus" /> Add a machine
            </button>
          </>
        )}
      </div>
      {computes.isRead.value && computes.table.ids.value.length === 0 && (
        <div class="empty">
          <h3>No computes yet</h3>
          <p>Labs run on computes: machines that join this gateway, or that it connects to.</p>
        </div>
      )}
      <ul class="computes">
        {computes.table.values().map((compute) => {
          const drain = drainOf(compute, computes.jobs.values())
          const isDraining = drain?.status === 'running'
          return (
            <li key={compute.compute_id} class="card">
              <div class="row">
                <span class={`dot ${compute.connected ? 'is-started' : ''}`} />
                <b>
                  <bdi>{compute.name}</bdi>
                </b>
                <span class="muted">
                  {compute.connected ? 'connected' : 'not connected'}
                  {compute.capabilities.version === null ? '' : `, version ${compute.capabilities.version}`}
                  {compute.accepts_projects ? '' : ', accepts no new labs'}
                </span>
                <span class="spacer" />
                {isAdministrator() && compute.compute_id !== 'local' && (
                  <>
                    {!compute.accepts_projects && !isDraining && (
                      <button type="button" class="is-quiet" onClick={() => takeLabs(compute)}>
                        <Icon name="undo" /> Accept labs again
                      </button>
                    )}
                    {!isDraining && (
                      <button type="button" class="is-quiet" onClick={open({ kind: 'drain', compute })}>
                        Drain …
                      </button>
                    )}
                    <button type="button" class="is-quiet" onClick={open({ kind: 'change', compute })}>
                      <Icon name="pencil" /> Change
                    </button>
                    <button type="button" class="is-quiet" onClick={open({ kind: 'remove', compute })}>
                      <Icon name="trash" /> Remove
                    </button>
                  </>
                )}
              </div>
              {compute.last_error !== null && (
                <p class="reason" dir="auto">
                  {compute.last_error}
                </p>
              )}
              {drain !== undefined && !compute.accepts_projects && <DrainView job={drain} />}
              <Load title="Processors" percent={compute.cpu_usage_percent} />
              <Load title="Memory" percent={compute.memory_usage_percent} />
              <p class="muted" dir="auto">
                {[...compute.labels, ...(compute.capabilities.labels ?? [])].join(' · ')}
              </p>
              <p class="muted">{compute.capabilities.node_types.join(', ')}</p>
            </li>
          )
        })}
      </ul>
      {shown?.kind === 'drain' && <DrainDialog compute={shown.compute} onClose={close} />}
      {shown?.kind === 'add' && (
        <DeclaredForm
          title="Add a machine by its address"
          schema="ComputeCreate"
          members={['name', 'protocol', 'host', 'port', 'user', 'password', 'labels']}
          verb="Add"
          values={{}}
          onSend={(body) => client.call('POST /v2/computes', { body: body as never })}
          onClose={close}
        />
      )}
      {shown?.kind === 'change' && (
        <DeclaredForm
          title={`Change ${shown.compute.name}`}
          schema="ComputeUpdate"
          members={['name', ...addressOf(shown.compute), 'accepts_projects', 'weight', 'labels']}
          verb="Change"
          values={shown.compute}
          onSend={(body) =>
            client.call('PUT /v2/computes/{compute_id}', { params: { compute_id: shown.compute.compute_id }, body })
          }
          onClose={close}
        />
      )}
      {shown?.kind === 'remove' && (
        <ActionDialog
          title="Remove the compute?"
          verb="Remove"
          isDanger
          onSend={() =>
            client.call('DELETE /v2/computes/{compute_id}', { params: { compute_id: shown.compute.compute_id } })
          }
          onClose={close}
        >
          <p>
            <b>
              <bdi>{shown.compute.name}</bdi>
            </b>{' '}
            leaves the fleet. Its nodes keep running there.
          </p>
        </ActionDialog>
      )}
      {shown?.kind === 'join' && <JoinDialog onClose={close} />}
    </>
  )
}

/** The members of the address of a compute; one that has joined has none. */
const addressOf = ({ protocol }: Compute): readonly string[] =>
  protocol === 'tunnel' ? [] : ['protocol', 'host', 'port', 'user', 'password']

/** Ends a drain, as far as new labs are concerned: what was moved stays where it is. */
function takeLabs({ compute_id }: Compute): void {
  const body = { accepts_projects: true }
  void client.call('PUT /v2/computes/{compute_id}', { params: { compute_id }, body }).catch(notifyError)
}

interface Computes {
  readonly table: Table<Compute>
  readonly jobs: Table<LabJob>
  readonly isRead: ReadonlySignal<boolean>
}

/** The computes and the jobs, kept up to date by the feed of the service while the component is shown. */
function useComputes(): Computes {
  const jobs = useSignal(new Table<LabJob>()).value
  const table = useSignal(new Table<Compute>()).value
  const isRead = useSignal(false)
  useEffect(() => {
    const over = new AbortController()
    void followFeed(client, {
      signal: over.signal,
      async read() {
        table.reset((await listComputes()).map((it) => [it.compute_id, it]))
        isRead.value = true
        const known = await client.call('GET /v2/jobs').catch(ignore('computes are shown without their drains'))
        jobs.reset((known ?? []).map((it) => [it.job_id, it]))
      },
      apply({ action, event }) {
        switch (action) {
          case 'job.created':
          case 'job.updated':
          case 'job.deleted':
            return jobs.apply(action, event.job_id, event)
          case 'compute.created':
          case 'compute.updated':
          case 'compute.deleted':
            return table.apply(action, event.compute_id, event)
        }
      },
    })
    return () => over.abort()
  }, [])
  return { table, jobs, isRead }
}

const Load = ({ title, percent }: { title: string; percent: number | null }) =>
  percent === null ? null : (
    <div class="load">
      <span>{title}</span>
      <meter min={0} max={100} high={90} value={percent} aria-label={title} />
      <span class="muted">{Math.round(percent)} %</span>
    </div>
  )

/** Makes a token for a compute that joins, and shows what to type there. */
function JoinDialog({ onClose }: { onClose: () => void }) {
  const name = useSignal('')
  const token = useSignal<NewAccessToken | undefined>(undefined)
  if (token.value === undefined)
    return (
      <ActionDialog
        title="Add a machine"
        verb="Create a token"
        onSend={async () => {
          token.value = await client.call('POST /v2/tokens', { body: { name: name.value.trim(), purpose: 'join' } })
        }}
        // An `ActionDialog` also closes when it is done: the dialog below then shows the token.
        onClose={() => token.value === undefined && onClose()}
      >
        <TextField id="join-name" title="Name of the token" value={name} />
      </ActionDialog>
    )
  const command = `patchbay serve --join ${location.origin.replace(/^http/, 'ws')} --join-token-file join-token`
  return (
    <Dialog title="Add a machine" isFirm onClose={onClose}>
      <p>On the compute, write the token into a file that only its user can read, and start the service:</p>
      <CopyText text={token.value.token} what="the token" />
      <CopyText text={command} what="the command" />
      <p class="muted">The token will not be shown again.</p>
      <div class="row form-actions">
        <button type="button" class="is-main" onClick={onClose}>
          Done
        </button>
      </div>
    </Dialog>
  )
}
