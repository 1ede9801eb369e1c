import { createServer, request } from 'node:http'
import { onTestFinished } from 'vitest'
import { listening } from './fleet.ts'
import type { TestService } from './service.ts'

interface Held {
  readonly port: number
  /** Resolves when there is such a request. */
  readonly held: Promise<void>
  goOn(): void
  /** Ends the connections of such requests in the middle of their answers. */
  breakOff(): void
}

/**
 * The port of a server that hands everything on to a service, but holds the requests of that method for files of that name until it is told
 * what to do with them.
 */
export async function holding(service: TestService, file: string, wanted = 'POST'): Promise<Held> {
  let seen = () => {}
  let decide: (goesOn: boolean) => void = () => {}
  const held = new Promise<void>((resolve) => {
    seen = resolve
  })
  const decided = new Promise<boolean>((resolve) => {
    decide = resolve
  })
  let isFree = false
  const server = createServer((req, res) => {
    const { method, headers, url = '' } = req
    const handOn = () => {
      const asked = request(service.url + url, { method, headers }, (answer) => {
        answer.pipe(res.writeHead(answer.statusCode ?? 502, answer.headers))
      })
      asked.on('error', () => res.destroy())
      req.pipe(asked)
    }
    if (isFree || method !== wanted || !url.endsWith(`/${file}`)) return handOn()
    seen()
    void decided.then((goesOn) =>
      goesOn ? handOn() : res.writeHead(200, { 'content-length': 2 }).write('x', () => res.destroy()),
    )
  })
  onTestFinished(() => {
    decide(false)
    server.closeAllConnections()
    server.close()
  })
  const settle = (goesOn: boolean) => () => {
    isFree = true
    decide(goesOn)
  }
  return { port: await listening(server), held, goOn: settle(true), breakOff: settle(false) }
}
