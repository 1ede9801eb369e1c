import type { LabJob } from '../../../src/client/patchbay.ts'
import { isSegmentKind } from '../../../src/labfile/segment-kinds.ts'
import { commands } from '../editing/commands.ts'
import { progressText } from '../editing/job-text.ts'
import type { LabWindow } from '../editing/lab-window.ts'
import { Fact } from '../parts/fact.tsx'
import { mayEdit } from '../state/session.ts'
import { EventList } from './event-list.tsx'
import { SnapshotsPanel } from './snapshots-panel.tsx'
import { Tool } from './toolbar.tsx'

/** A lab with fewer nodes shows what to do first. */
const fewNodes = 5

/** The lab itself: its counts, its jobs, and what to do first. */
export function LabPanel({ window: lab }: { window: LabWindow }) {
  const { editor } = lab
  const { store } = editor
  const nodes = store.nodes.values()
  // As on the card of the lab: switches and the like are counted apart, as they always pass frames.
  const machines = nodes.filter(({ node_type }) => !isSegmentKind(node_type))
  const running = machines.filter(({ status }) => status === 'started').length
  const others = new Map<string, number>()
  for (const node of nodes) {
    const title = editor.kindOf(node)?.title ?? node.node_type
    if (isSegmentKind(node.node_type)) others.set(title, (others.get(title) ?? 0) + 1)
  }
  const isKnown = store.project.value !== undefined
  const jobs = store.jobs.values().filter(({ status }) => status === 'running' || status === 'failed')
  return (
    <aside class="inspector" aria-label="Lab">
      <h2 dir="auto">{store.project.value?.name}</h2>
      {isKnown ? (
        <dl class="facts">
          <Fact name="Nodes" value={machines.length === 0 ? '0' : `${machines.length}, ${running} running`} />
          {[...others].map(([title, count]) => (
            <Fact key={title} name={`${title}${title.endsWith('h') ? 'es' : 's'}`} value={String(count)} />
          ))}
          <Fact name="Links" value={String(store.links.ids.value.length)} />
        </dl>
      ) : (
        <p class="muted">Reading …</p>
      )}
      {mayEdit() && (
        <div class="row">
          <Tool id="export" icon="download" text="Export …" window={lab} />
        </div>
      )}
      {jobs.length > 0 && (
        <section>
          <h3>Jobs</h3>
          {jobs.map((job) => (
            <Job key={job.job_id} job={job} />
          ))}
        </section>
      )}
      <SnapshotsPanel editor={editor} />
      <EventList events={store.events.value} />
      {mayEdit() && isKnown && nodes.length < fewNodes && (
        <section class="hints">
          <h3>How to</h3>
          <ul>
            <li class="for-wide">Drag nodes from the left onto the map.</li>
            <li class="for-narrow">Tap nodes above the map to add them.</li>
            <li>Draw a link from a dot at the edge of a node to another node.</li>
            <li>Double-click a node for its console.</li>
            <li>Click a link to see whether frames pass, and to impair it.</li>
          </ul>
          <h3>Keys</h3>
          <dl class="keys">
            {commands
              .filter(({ id }) => ['start', 'connect', 'delete', 'undo', 'find', 'keys'].includes(id))
              .map(({ id, title, keys }) => [
                <dt key={`${id} key`}>
                  <kbd>{keys?.[0]}</kbd>
                </dt>,
                <dd key={id}>{title}</dd>,
              ])}
          </dl>
        </section>
      )}
    </aside>
  )
}

const Job = ({ job }: { job: LabJob }) => (
  <div class={`job is-${job.status}`}>
    <p>
      {progressText(job)} {job.status === 'failed' && '– failed'}
    </p>
    {job.status === 'running' ? (
      <progress value={job.done} max={job.total} aria-label={progressText(job)} />
    ) : (
      <p class="reason" dir="auto">
        {job.reason ?? job.nodes[0]?.reason}
      </p>
    )}
  </div>
)
