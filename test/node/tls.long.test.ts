import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { rename, writeFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { join } from 'node:path'
import { json, text } from 'node:stream/consumers'
import { connect } from 'node:tls'
import { expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { basic } from '../support/auth-app.ts'
import { certificate, certificateKey, otherCertificate, otherCertificateKey } from '../support/certificate.ts'
import { freshDirectory } from '../support/directory.ts'
import { TestService } from '../support/service.ts'

const ca = [certificate, otherCertificate]
const authorization = basic('anna', 'geheim')

async function ask<T>(url: string, method = 'GET', body?: object): Promise<{ status: number | undefined; body: T }> {
  const sent = request(url, { method, ca, agent: false, headers: { authorization } })
  sent.end(body && JSON.stringify(body))
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  return { status: answer.statusCode, body: (await json(answer)) as T }
}

/** The files of a certificate, in a directory of their own. */
async function pairIn(directory: string) {
  const [cert, key] = [join(directory, 'cert.pem'), join(directory, 'key.pem')]
  const write = async (certText: string, keyText: string) => {
    // As tools do that renew certificates: each file is complete when it has its name.
    for (const [path, text] of [
      [cert, certText],
      [key, keyText],
    ] as const) {
      await writeFile(`${path}.new`, text)
      await rename(`${path}.new`, path)
    }
  }
  await write(certificate, certificateKey)
  return { cert, key, write }
}

/** The certificate that the service shows. */
async function shownBy(url: string): Promise<string | undefined> {
  const socket = connect({ host: '127.0.0.1', port: Number(new URL(url).port), ca })
  await once(socket, 'secureConnect')
  const shown = socket.getPeerX509Certificate()?.fingerprint256
  socket.destroy()
  return shown
}

/** The status line for a request with two Host headers. */
async function statusOfTwoHosts(url: string): Promise<string | undefined> {
  const { port, host } = new URL(url)
  const socket = connect({ host: '127.0.0.1', port: Number(port), ca })
  socket.write(`GET /v2/compute/version HTTP/1.1\r\nHost: ${host}\r\nHost: evil.example\r\n\r\n`)
  return (await text(socket)).split('\r\n', 1)[0]
}

const fingerprint = (pem: string) => new X509Certificate(pem).fingerprint256

test('the service serves https and websockets, and reads the certificate again when the files change', async () => {
  const directory = await freshDirectory()
  const { cert, key, write } = await pairIn(directory)
  const service = await TestService.start({
    ...{ user: 'anna', password: 'geheim', 'tls.cert': cert, 'tls.key': key },
  })
  expect(service.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/)
  expect((await ask(`${service.url}/v2/compute/version`)).status).toBe(200)
  expect(await statusOfTwoHosts(service.url)).toBe('HTTP/1.1 400 Bad Request')
  const socket = new WebSocket(`${service.url.replace('https', 'wss')}/v2/compute/notifications/ws`, {
    ...{ ca, headers: { authorization } },
  })
  const [ping] = (await once(socket, 'message')) as [Buffer]
  expect(JSON.parse(String(ping))).toMatchObject({ action: 'ping' })
  expect(await shownBy(service.url)).toBe(fingerprint(certificate))
  const reload = () => ask(`${service.url}/v2/compute/config/reload`, 'POST')
  // What does not belong together is not taken.
  await write(otherCertificate, certificateKey)
  expect((await reload()).status).toBe(200)
  expect(await shownBy(service.url)).toBe(fingerprint(certificate))
  await write(otherCertificate, otherCertificateKey)
  expect((await reload()).status).toBe(200)
  expect(await shownBy(service.url)).toBe(fingerprint(otherCertificate))
  // Connections that are open stay so.
  expect(socket.readyState).toBe(WebSocket.OPEN)
  socket.close()
  // By itself, too.
  await write(certificate, certificateKey)
  await expect.poll(() => shownBy(service.url)).toBe(fingerprint(certificate))
})

test('a service whose certificate cannot be used says why, and does not start', async () => {
  const directory = await freshDirectory()
  const { cert, key, write } = await pairIn(directory)
  await write(otherCertificate, certificateKey)
  const started = TestService.start({ 'tls.cert': cert, 'tls.key': key })
  await expect(started).rejects.toThrow('ended before it was ready')
  await write(certificate, certificateKey)
})

test('a compute is registered and used by https', async () => {
  const directory = await freshDirectory()
  const { cert, key } = await pairIn(directory)
  const compute = await TestService.start({
    ...{ user: 'anna', password: 'geheim', 'pc.engine': 'embedded', 'tls.cert': cert, 'tls.key': key },
  })
  const gateway = await TestService.start({ gateway: true }, ['env', `NODE_EXTRA_CA_CERTS=${cert}`])
  const { port } = new URL(compute.url)
  const shown = await gateway.call('POST', '/v2/computes', {
    ...{ compute_id: 'c1', protocol: 'https', host: '127.0.0.1', port: Number(port), user: 'anna', password: 'geheim' },
  })
  expect(shown).toMatchObject({ connected: true, protocol: 'https' })
  const project = await gateway.call('POST', '/v2/compute/projects', { name: 'lab' })
  const path = `/v2/compute/projects/${project.project_id}`
  await gateway.call('POST', `${path}/pc/nodes`, { name: 'PC1' })
  const { status, body } = await ask<{ name: string }[]>(`${compute.url}${path}/pc/nodes`)
  expect([status, body.map(({ name }) => name)]).toEqual([200, ['PC1']])
})

test('HTTP Basic from another host is taken by https only, or where the settings say so', async () => {
  const settings = {
    user: 'anna',
    password: 'geheim',
    token: 't0ken',
    trusted_proxies: ['127.0.0.1'],
  }
  const service = await TestService.start(settings)
  const answer = (headers: Record<string, string>) => service.fetch('/v2/compute/version', { headers })
  const from = (address: string, scheme: string) => ({ 'x-forwarded-for': address, 'x-forwarded-proto': scheme })
  const refused = await answer({ authorization, ...from('192.0.2.1', 'http') })
  expect(refused.status).toBe(403)
  expect(((await refused.json()) as { message: string }).message).toContain('tls.cert')
  expect((await answer({ authorization, ...from('192.0.2.1', 'https') })).status).toBe(200)
  expect((await answer({ authorization, forwarded: 'for=192.0.2.1;proto=https' })).status).toBe(200)
  expect((await answer({ authorization: 'Bearer t0ken', ...from('192.0.2.1', 'http') })).status).toBe(200)
  expect((await answer({ authorization })).status).toBe(200)
  await service.end()
  await service.configure({ ...settings, insecure: true })
  await service.restart()
  expect((await answer({ authorization, ...from('192.0.2.1', 'http') })).status).toBe(200)
})
