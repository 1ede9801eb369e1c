import { setImmediate as turn } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { MemberFeed } from '../../../../src/fleet/events/member-feed.ts'
import type { Member } from '../../../../src/fleet/members/members.ts'
import type { FeedItem } from '../../../../src/model/event.ts'

const member = { id: 'one' } as Member

/** A feed whose projects `p...` are placed at the compute; any other project is where `found` says, as soon as it says so. */
function feed() {
  const told: string[] = []
  const found = new Map<string, (isTheirs: boolean) => void>()
  const known = new Map<string, boolean>()
  const items = new MemberFeed({
    member,
    locator: {
      knownAt: async (project) => (project.startsWith('p') ? true : known.get(project)),
      isAt: (project) =>
        new Promise((resolve) => {
          found.set(project, (isTheirs) => {
            known.set(project, isTheirs)
            resolve(isTheirs)
          })
        }),
    },
    emit: ({ project_id, seq }) => told.push(`${project_id} ${seq}`),
    foreign: () => told.push('foreign'),
    gap: () => told.push('gap'),
    told: (seq) => told.push(`up to ${seq}`),
  })
  onTestFinished(() => items.end())
  return { told, found, items }
}

const event = (project_id: string, seq: number): FeedItem => ({
  kind: 'event',
  event: { seq, project_id, payload: { type: 'log.info', message: '' } },
})

test('an event whose project is searched for is overtaken by events of other projects, and not of its own', async () => {
  const { told, found, items } = feed()
  await items.handle(event('new', 1))
  await items.handle(event('p', 2))
  await items.handle(event('new', 3))
  await turn()
  // Until the first was told, what follows it does not count as heard.
  expect(told).toEqual(['p 2'])
  found.get('new')?.(true)
  await turn()
  expect(told).toEqual(['p 2', 'new 1', 'new 3', 'up to 3'])
  await items.handle(event('new', 4))
  expect(told.slice(4)).toEqual(['new 4', 'up to 4'])
})

test('events of a project that the search does not find on the compute are not reported', async () => {
  const { told, found, items } = feed()
  await items.handle(event('elsewhere', 1))
  await turn()
  found.get('elsewhere')?.(false)
  await turn()
  expect(told).toEqual(['foreign', 'up to 1'])
})

test('waiting events are not reported after a gap, which causes a resync, or after the end', async () => {
  const { told, found, items } = feed()
  await items.handle(event('new', 1))
  await items.handle({ kind: 'resync', seq: 2 })
  expect(told).toEqual(['gap', 'up to 2'])
  await items.handle(event('newer', 3))
  await turn()
  items.end()
  for (const project of ['new', 'newer']) found.get(project)?.(true)
  await turn()
  expect(told).toEqual(['gap', 'up to 2'])
})

test('few unknown projects of a compute are searched for at a time, and its feed is not read while too many wait', async () => {
  const { told, found, items } = feed()
  for (let seq = 1; seq <= 16; seq++) await items.handle(event(`new${seq}`, seq))
  await items.handle(event('p', 17))
  await turn()
  expect([told, [...found.keys()]]).toEqual([['p 17'], ['new1', 'new2', 'new3', 'new4']])
  let isTaken = false
  const next = items.handle(event('new18', 18)).then(() => {
    isTaken = true
  })
  await turn()
  expect(isTaken).toBe(false)
  found.get('new3')?.(false)
  await next
  await turn()
  expect([told, [...found.keys()]]).toEqual([
    ['p 17', 'foreign'],
    ['new1', 'new2', 'new3', 'new4', 'new5'],
  ])
})

test('the end of a feed that is not read because too many events wait is noticed', async () => {
  const { told, items } = feed()
  for (let seq = 1; seq <= 16; seq++) await items.handle(event(`new${seq}`, seq))
  const next = items.handle(event('new17', 17))
  items.end()
  await next
  expect(told).toEqual([])
})
