import { expect, test } from 'vitest'
import { LabEditor } from '../../../runtime/browser/editing/lab-editor.ts'
import { atField, FieldFault } from '../../../runtime/browser/forms/field-fault.ts'
import { fieldsOf, type Schema } from '../../../runtime/browser/forms/fields.ts'
import { LabStore } from '../../../runtime/browser/state/lab-store.ts'
import { notices } from '../../../runtime/browser/state/notices.ts'
import { type LabKind, type LabNode, Patchbay } from '../../../src/client/patchbay.ts'
import { kindEndpoints } from '../../../src/endpoints/compute/kinds.ts'

const answer = (await kindEndpoints[0]?.handle({} as never, {} as never)) as { readonly body: LabKind[] }
const kindOf = (name: string) => answer.body.find((it) => it.name === name) as LabKind
const machine = { node_id: 'm', name: 'M', node_type: 'machine-emulator', status: 'started' } as LabNode

/** A lab with a machine that runs. The service answers each request in turn, then with the machine. */
function lab(...answers: Response[]) {
  const asked: string[] = []
  const client = new Patchbay({
    server: 'http://127.0.0.1:9',
    fetch: (url, { method = 'GET', body }) => {
      if (method === 'GET') return Promise.resolve(Response.json({ undo: null, redo: null }))
      asked.push(`${method} ${url.slice(url.lastIndexOf('/') + 1)} ${String(body)}`)
      return Promise.resolve(answers.shift() ?? Response.json(machine))
    },
  })
  const store = new LabStore()
  store.nodes.put('m', machine)
  const editor = new LabEditor(client, store, 'lab')
  const save = (properties: Record<string, unknown>) =>
    editor.settings.save(machine, kindOf('machine-emulator'), properties)
  return { store, editor, asked, save, waiting: () => [...editor.settings.waiting.value] }
}

test('settings that a running node takes only at its next start wait until it was stopped', async () => {
  const stopped = { ...machine, status: 'stopped' } as const
  // Tests of one process share the notices of the page.
  notices.value = []
  const { store, save, waiting } = lab(Response.json(machine), Response.json(machine), Response.json(stopped))
  await save({ cdrom_image: 'tools.iso' })
  expect(waiting()).toEqual([])
  await save({ ram: 512 })
  expect(waiting()).toEqual(['m'])
  expect(notices.value.map(({ kind, text }) => [kind, text])).toEqual([
    ['done', 'The settings of M are saved.'],
    ['done', 'The settings of M are saved, and take effect at its next start.'],
  ])
  store.nodes.put('m', stopped)
  expect(waiting()).toEqual([])
  await save({ ram: 256 })
  expect(waiting()).toEqual([])
})

test('a restart stops the node, and starts it when it is stopped', async () => {
  const job = (job_id: string, status: string) =>
    Response.json({ job_id, action: 'stop', status, nodes: [], done: 0, total: 1 })
  const { store, editor, asked } = lab(job('j', 'running'), job('k', 'running'))
  const restarting = editor.jobs.restart(['m'])
  await expect.poll(() => asked.length).toBe(1)
  store.jobs.put('j', { job_id: 'j', action: 'stop', status: 'done', nodes: [], done: 1, total: 1 } as never)
  await restarting
  expect(asked.map((it) => it.replace(/.*"action":"(\w+)".*/, '$1'))).toEqual(['stop', 'start'])
})

test('an image that is missing is said at its field, by the name that people read, and can be uploaded', async () => {
  const message = 'cdrom_image: "tools.iso" does not exist; upload it, then try again'
  const headers = { 'x-patchbay-error': 'image-missing' }
  const missing = Response.json({ message, status: 409, image: 'tools.iso' }, { status: 409, headers })
  const { editor, save } = lab(missing)
  const before = notices.value.length
  const fault: FieldFault = await save({ cdrom_image: 'tools.iso' }).catch((error) => error)
  expect(fault).toBeInstanceOf(FieldFault)
  expect(atField(fault.message, fieldsOf(kindOf('machine-emulator').settings as Schema))).toEqual({
    name: 'cdrom_image',
    text: 'CD-ROM image: "tools.iso" does not exist; upload it, then try again',
  })
  // It stands in the form, which a later save clears, and not in a message that stays.
  expect(notices.value.length).toBe(before)
  let saves = 0
  fault.upload?.(() => {
    saves += 1
  })
  const [lacked] = editor.jobs.missing.value
  expect(lacked).toMatchObject({ node_id: 'm', kind: 'machine-emulator', image: 'tools.iso' })
  lacked?.save?.()
  expect(saves).toBe(1)
})
