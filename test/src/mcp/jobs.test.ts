import { expect, test } from 'vitest'
import { Patchbay } from '../../../src/client/patchbay.ts'
import { isFailed, jobAtEnd, notYet } from '../../../src/mcp/parts/jobs.ts'

const [job_id, project_id] = [crypto.randomUUID(), crypto.randomUUID()]
const counts = { total: 2, done: 1, failed: 0, skipped: 0 }
const job = (status: string) => Response.json({ job_id, status, ...counts })
const refused = (status: number, code: string) =>
  Response.json({ status, message: code }, { status, headers: { 'x-patchbay-error': code } })

/** Waits for a job of a service that gives these answers, and then the last one again; undefined: no answer. */
async function waited(answers: (Response | undefined)[], ms = 60_000) {
  const fetch = async () => {
    const answer = answers.length > 1 ? answers.shift() : answers[0]
    if (answer === undefined) throw new TypeError('connection reset')
    return answer.clone()
  }
  const progress: number[] = []
  const context = {
    ...{ client: new Patchbay({ server: 'http://patchbay.test', fetch }), signal: new AbortController().signal },
    ...{ read: () => Promise.reject(new Error('reads no file')), asset: async () => undefined },
    progress: (done: number) => void progress.push(done),
  }
  return { found: await jobAtEnd(job_id, context, { doing: 'starting', project_id, until: Date.now() + ms }), progress }
}

test('a job is asked for again when a request was refused for now, or has no answer', async () => {
  const answers = [
    refused(429, 'too-many-requests'),
    undefined,
    refused(503, 'unavailable'),
    job('running'),
    job('done'),
  ]
  expect(await waited(answers)).toMatchObject({ found: { status: 'done' }, progress: [1, 1] })
})

test('at the end of the time a job is as it was last seen, or not known', async () => {
  expect((await waited([job('running'), refused(429, 'too-many-requests')], 200)).found).toMatchObject({
    status: 'running',
  })
  expect((await waited([undefined], 0)).found).toBe('unheard')
})

test('a job that is not there is gone with its lab, and other errors are errors', async () => {
  const gone = [job('running'), refused(404, 'no-such-job'), refused(404, 'no-such-project')]
  expect((await waited(gone)).found).toBe('gone')
  await expect(waited([refused(403, 'forbidden')])).rejects.toMatchObject({ status: 403 })
})

test('a job is forgotten when the service was started again: its lab is there', async () => {
  const again = [job('running'), undefined, refused(404, 'no-such-job'), Response.json({ project_id })]
  const { found } = await waited(again)
  expect(found).toBe('forgotten')
  expect(notYet(found)).toEqual([expect.stringMatching(/^Not known: the service no longer has the job/)])
  expect(isFailed(found)).toBe(true)
})
