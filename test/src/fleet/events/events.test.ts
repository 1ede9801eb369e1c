import { expect, onTestFinished, test } from 'vitest'
import { EventLog } from '../../../../src/fleet/events/event-log.ts'
import { type Bookmarks, GatewayEvents } from '../../../../src/fleet/events/events.ts'
import type { FleetMembers, Member } from '../../../../src/fleet/members/members.ts'
import { ProjectLocator } from '../../../../src/fleet/placement/project-locator.ts'
import type { FeedRequest, LocalHostAgent } from '../../../../src/host-agent.ts'
import { notFound } from '../../../../src/lib/errors/api-error.ts'
import type { FeedItem } from '../../../../src/model/event.ts'
import type { Project } from '../../../../src/model/project.ts'
import { MemoryPlacements } from '../../../support/memory-placements.ts'

const neverForwards = () => Promise.reject(new Error('nothing is handed on'))

const load = { cpu_usage_percent: 1, memory_usage_percent: 2 }
const project = '11111111-1111-4111-8111-111111111111'

/** A compute with a real log, and what was asked of it. */
function compute() {
  const log = new EventLog({ history: 100, feeds: () => 10 }, () => load)
  onTestFinished(() => log.close())
  const asked: FeedRequest[] = []
  const events = {
    async open(request: FeedRequest) {
      asked.push(request)
      return log.open(request)
    },
  }
  const agent = { events } as unknown as LocalHostAgent
  const member = { id: 'one', name: 'one', agentFor: () => agent, forward: neverForwards, isConnected: true }
  return {
    asked,
    log,
    say: (message: string) => log.emit(project, { type: 'log.info', message }),
    member: {
      ...member,
      load,
      labels: [],
      disconnectedSince: undefined,
      acceptsProjects: true,
      weight: 1,
    } satisfies Member,
  }
}

/** What a program that sleeps keeps. */
class Kept extends Map<string, number> implements Bookmarks {
  put(id: string, seq: number): void {
    this.set(id, seq)
  }
}

function gateway(member: Member, bookmarks: Bookmarks, placements = placedAt('one')): GatewayEvents {
  const members: FleetMembers = { all: async () => [member], find: async () => member, watch: () => () => {} }
  const events = new GatewayEvents(members, new ProjectLocator(members, placements), () => load, bookmarks)
  onTestFinished(() => events.close())
  return events
}

/** The project is at that compute. */
function placedAt(id: string): MemoryPlacements {
  const placements = new MemoryPlacements()
  placements.map.set(project, id)
  return placements
}

/** What comes by a feed, item by item, without its pings. */
function told(feed: ReadableStream<FeedItem>): () => Promise<string> {
  const reader = feed.getReader()
  return async () => {
    for (;;) {
      const { value } = await reader.read()
      if (value?.kind === 'event' && 'message' in value.event.payload) return value.event.payload.message
      if (value?.kind !== 'ping') return value?.kind ?? 'the end'
    }
  }
}

test('a reader from before a hibernation gets missed events once, without resync', async () => {
  const { asked, say, member } = compute()
  const bookmarks = new Kept()
  const before = gateway(member, bookmarks)
  const over = new AbortController()
  const first = told(await before.open({ pings: false, signal: over.signal }))
  say('heard')
  expect(await first()).toBe('heard')
  expect(asked).toMatchObject([{ pings: false }])

  // The program is gone, with all that it had in memory; what it kept is not.
  const kept = new Kept(bookmarks)
  over.abort()
  say('missed')
  const after = gateway(member, kept)
  const { signal } = new AbortController()
  const both = [0, 1].map(() => told(after.resume({ pings: false, signal })))
  for (const next of both) expect(await next()).toBe('missed')
  say('and on')
  for (const next of both) expect(await next()).toBe('and on')
  expect(asked).toHaveLength(2)
})

test('without a bookmark a reader gets resync', async () => {
  const { say, member } = compute()
  const events = gateway(member, new Kept())
  const next = told(events.resume({ pings: false, signal: new AbortController().signal }))
  expect(await next()).toBe('resync')
  say('from here on')
  expect(await next()).toBe('from here on')
})

test('events of earlier readers are not sent to a new one', async () => {
  const { asked, say, member } = compute()
  say('long ago')
  const bookmarks = new Kept([['one', 1]])
  const next = told(await gateway(member, bookmarks).open({ signal: new AbortController().signal }))
  say('now')
  expect(await next()).toBe('now')
  expect(asked[0]?.since).toBeUndefined()
})

test('events of a project that is placed elsewhere, or nowhere, are dropped and counted', async () => {
  const { log, member } = compute()
  const placements = placedAt('two')
  const events = gateway(member, new Kept(), placements)
  const next = told(await events.open({ pings: false, signal: new AbortController().signal }))
  const unknown = '22222222-2222-4222-8222-222222222222'
  const own = '33333333-3333-4333-8333-333333333333'
  placements.map.set(own, 'one')
  log.emit(project, { type: 'project.closed', project: { project_id: project } as Project })
  log.emit(unknown, { type: 'log.info', message: 'of nobody' })
  log.emit(own, { type: 'log.info', message: 'its own' })
  expect(await next()).toBe('its own')
  // It passes that of nobody, which is looked for.
  await expect
    .poll(() => events.metrics())
    .toMatchObject([{ name: 'patchbay_gateway_foreign_events_total', samples: [{ value: 2 }] }])
})

test('a compute that names projects which there are not does not keep all computes busy with searches', async () => {
  const { member } = compute()
  let searches = 0
  let sent = 0
  const agent = {
    events: {
      open: async ({ signal }: FeedRequest) =>
        new ReadableStream<FeedItem>(
          {
            pull(controller) {
              if (signal.aborted) return controller.close()
              sent += 1
              const event = { seq: sent, project_id: crypto.randomUUID(), payload: { type: 'log.info', message: '' } }
              controller.enqueue({ kind: 'event', event } as FeedItem)
            },
          },
          { highWaterMark: 0 },
        ),
    },
    projects: {
      async get() {
        searches += 1
        throw notFound('There is no such project', { code: 'no-such-project' })
      },
    },
  } as unknown as LocalHostAgent
  const over = new AbortController()
  onTestFinished(() => over.abort())
  const began = Date.now()
  await gateway({ ...member, agentFor: () => agent }, new Kept(), new MemoryPlacements()).open({ signal: over.signal })
  await expect.poll(() => searches).toBeGreaterThanOrEqual(200)
  await new Promise((resolve) => setTimeout(resolve, 500))
  // Those at once, those of the time, and what waits.
  const most = 200 + ((Date.now() - began) / 1000) * 10 + 20
  expect(searches).toBeLessThan(most)
  expect(sent).toBeLessThan(most + 50)
})

test('the last events of a project that was just deleted are reported', async () => {
  const { say, member } = compute()
  const placements = placedAt('one')
  const members: FleetMembers = { all: async () => [member], find: async () => member, watch: () => () => {} }
  const locator = new ProjectLocator(members, placements)
  const events = new GatewayEvents(members, locator, () => load)
  onTestFinished(() => events.close())
  const next = told(await events.open({ pings: false, signal: new AbortController().signal }))
  await locator.forget(project)
  say('the last')
  expect(await next()).toBe('the last')
})
