import { test } from 'vitest'
import { bearer } from '../../support/auth-app.ts'
import { succeeded } from '../../support/calls.ts'
import { TestService } from '../../support/service.ts'
import { expectTornUploadsChangeNothing, type Gateway, registerBoth } from '../../support/torn-uploads.ts'

const token = 'the-admin-token-of-tests'

async function startGateway(): Promise<Gateway> {
  const service = await TestService.start({ gateway: true, token })
  const ask: Gateway['fetch'] = (method, path, body, init = {}) =>
    service.fetch(path, {
      method,
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...init,
      headers: { authorization: bearer(token), ...init.headers },
    })
  return {
    url: service.url,
    token,
    fetch: ask,
    async call<T>(method: string, path: string, body?: unknown): Promise<T> {
      return succeeded(method, path, await ask(method, path, body))
    },
  }
}

test('an upload to a gateway whose connection breaks changes nothing on its computes, and they stay connected', async () => {
  const [gateway, a, b] = await Promise.all([
    startGateway(),
    TestService.start({ 'pc.engine': 'embedded' }),
    TestService.start({ 'pc.engine': 'embedded' }),
  ])
  await registerBoth(gateway, a, b)
  await expectTornUploadsChangeNothing(gateway, { a, b })
})
