import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { wireFetch } from '../../../runtime/node/cli/wire-fetch.ts'
import { CommandLine } from '../../support/command-line.ts'

async function serverWith(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('a command does not load the fetch of Node, which takes longer than most commands', async () => {
  const server = await serverWith((_, answer) => answer.end('[]'))
  const patchbay = await CommandLine.of({ server })
  const listed = `data:text/javascript,process.on('exit',()=>console.error(process.moduleLoadList.join()))`
  const { code, out, err } = await patchbay.runProgram(['ls'], { env: { NODE_OPTIONS: `--import=${listed}` } })
  expect({ code, out }).toEqual({ code: 0, out: `No labs on ${server}\n` })
  expect(err).toContain('NativeModule http')
  expect(err).not.toContain('undici')
})

test.each([
  ['none', undefined, '', { 'content-length': '0' }],
  ['a text', 'käse', 'käse', { 'content-length': '5' }],
  ['a blob', new Blob(['ab', 'cd']), 'abcd', { 'content-length': '4' }],
  ['a stream', new Blob(['abcd']).stream(), 'abcd', { 'transfer-encoding': 'chunked' }],
])('the body of a request: %s', async (_, body, sent, headers) => {
  let seen: IncomingMessage | undefined
  const server = await serverWith((request, answer) => {
    seen = request
    request.pipe(answer.writeHead(200, { 'x-word': 'yes' }))
  })
  const answer = await wireFetch(`${server}/v2/x?a=b%20c`, {
    ...{ method: 'POST', headers: { authorization: 'me' } },
    ...(body !== undefined && { body }),
  })
  expect(answer).toMatchObject({ ok: true, status: 200 })
  expect([answer.headers.get('X-Word'), answer.headers.get('other')]).toEqual(['yes', null])
  expect(await answer.text()).toBe(sent)
  expect([seen?.method, seen?.url]).toEqual(['POST', '/v2/x?a=b%20c'])
  expect(seen?.headers).toMatchObject({ authorization: 'me', ...headers })
})

test('an answer in pieces is read whole, and a redirect is not followed', async () => {
  const server = await serverWith((_, answer) => {
    answer.writeHead(302, { location: '/elsewhere' })
    answer.write(Buffer.from([0xc3]))
    setImmediate(() => answer.end(Buffer.from([0xa4])))
  })
  const answer = await wireFetch(server, {})
  expect(answer).toMatchObject({ ok: false, status: 302 })
  expect(await answer.text()).toBe('ä')
})

test('the body of an answer ends with the signal, and with a connection that is lost', async () => {
  const server = await serverWith((request, answer) => {
    answer.write('first')
    if (request.url === '/lost') setImmediate(() => answer.destroy())
  })
  const over = new AbortController()
  const answer = await wireFetch(server, { signal: over.signal })
  const whole = answer.text()
  over.abort(new Error('Ctrl-C'))
  await expect(whole).rejects.toThrow('Ctrl-C')
  await expect(wireFetch(server, { signal: over.signal })).rejects.toThrow('Ctrl-C')
  await expect((await wireFetch(`${server}/lost`, {})).text()).rejects.toThrow('aborted')
})

test('a service that cannot be reached is an error with the reason of the system', async () => {
  await expect(wireFetch('http://127.0.0.1:9', {})).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  await expect(wireFetch('http://[::1]:9', {})).rejects.toThrow(/::1/)
})

test('a command says why a service cannot be reached, and what to do', async () => {
  const patchbay = await CommandLine.of({ server: 'http://127.0.0.1:9' })
  expect(await patchbay.run(['ls'])).toEqual({
    ...{ code: 5, out: '' },
    err:
      'patchbay: The service http://127.0.0.1:9 cannot be reached: nothing listens there ' +
      '(is it running? "patchbay serve" starts a service, --server URL selects another)\n',
  })
  const server = await serverWith((request) => request.socket.destroy())
  expect((await patchbay.run(['ls', '--server', server])).err).toMatch(
    / cannot be reached: the other side closed the connection \(/,
  )
  const plain = await serverWith((_, answer) => answer.end())
  expect((await patchbay.run(['ls', '--server', plain.replace('http:', 'https:')])).err).toMatch(
    / cannot be reached: the server there does not use TLS; /,
  )
})
