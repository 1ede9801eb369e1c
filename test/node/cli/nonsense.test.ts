import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { CommandLine } from '../../support/command-line.ts'

/** What a service that is not a Patchbay answers, and commands that read it. */
const cases = [
  ['<!doctype html>', 'ls'],
  ['{}', 'ls'],
  ['null', 'inspect lab'],
  ['{}', 'inspect lab'],
  ['[{"name":"lab"}]', 'inspect lab'],
  ['[null]', 'inspect lab/PC1'],
  ['"text"', 'start lab'],
  ['', 'computes ls'],
] as const

test('a command says in a sentence that the answer of a service is not that of a Patchbay', async () => {
  let body = ''
  const server = createServer((_, answer) => answer.end(body)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const patchbay = await CommandLine.of({ server: url })
  for (const [said, command] of cases) {
    body = said
    const { code, err } = await patchbay.run(command.split(' '))
    expect({ said, command, code, err }).toMatchObject({
      code: 5,
      err: expect.stringMatching(/sent an unexpected response/),
    })
    expect(err).toContain(`The service ${url} `)
    expect(err).not.toMatch(/^ +at /m)
  }
})
