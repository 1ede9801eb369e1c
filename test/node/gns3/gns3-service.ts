import { onTestFinished } from 'vitest'
import { TestService } from '../../support/service.ts'

const settings = { 'pc.engine': 'embedded', clients: 'gns3' }

/** A service for clients of release 2.2. */
export const gns3Service = (more: Record<string, unknown> = {}): Promise<TestService> =>
  TestService.start({ ...settings, ...more })

/** The same for several tests, which call `close`. */
export const startGns3 = (more: Record<string, unknown> = {}): Promise<TestService> =>
  TestService.startForAll({ ...settings, ...more })

/** The status and the body of an answer. */
export async function answerOf(
  service: TestService,
  method: string,
  path: string,
  body?: unknown,
): Promise<[status: number, body: Record<string, unknown>]> {
  const answer = await service.fetch(path, { method, ...(body !== undefined && { body: JSON.stringify(body) }) })
  const text = await answer.text()
  return [answer.status, text === '' ? {} : JSON.parse(text)]
}

interface Line {
  readonly action: string
  readonly event: Record<string, unknown>
}

/** What a feed has told so far. It ends with the test. */
export async function heard(service: TestService, path: string): Promise<Line[]> {
  const lines: Line[] = []
  const socket = new WebSocket(service.url.replace('http', 'ws') + path)
  onTestFinished(() => socket.close())
  await new Promise<void>((resolve, reject) => {
    socket.onerror = () => reject(new Error(`no feed at ${path}`))
    // The first line is a ping.
    socket.onmessage = ({ data }) => {
      lines.push(JSON.parse(String(data)))
      resolve()
    }
  })
  return lines
}
