import { onTestFinished } from 'vitest'
import { hangMs } from './limits.ts'
import type { TestService } from './service.ts'

/** A console by websocket: what was shown so far, and a wait for a text in it. */
export interface SocketConsole {
  readonly socket: WebSocket
  readonly closed: Promise<void>
  /** Resolves when the text was shown; rejects when the console closes before, or says nothing more for 10 s. */
  expect(text: string): Promise<void>
}

/** Rejects when the console is refused. */
export async function openSocketConsole(service: TestService, node: string, query = ''): Promise<SocketConsole> {
  const socket = new WebSocket(`${service.url.replace('http', 'ws')}${node}/console/ws${query}`)
  socket.binaryType = 'arraybuffer'
  onTestFinished(() => socket.close())
  let shown = ''
  let isClosed = false
  let wake = () => {}
  socket.onmessage = ({ data }) => {
    shown += new TextDecoder().decode(data as ArrayBuffer)
    wake()
  }
  const closed = new Promise<void>((resolve) => {
    socket.onclose = () => {
      isClosed = true
      wake()
      resolve()
    }
  })
  await new Promise<void>((resolve, reject) => {
    socket.onopen = () => resolve()
    socket.onerror = () => reject(new Error('refused'))
  })
  return {
    socket,
    closed,
    async expect(text) {
      while (!shown.includes(text)) {
        if (isClosed) throw new Error(`closed before ${text}; seen: ${JSON.stringify(shown)}`)
        await new Promise<void>((resolve, reject) => {
          const late = () => reject(new Error(`timed out before ${text}; seen: ${JSON.stringify(shown)}`))
          const timer = setTimeout(late, hangMs)
          wake = () => {
            clearTimeout(timer)
            resolve()
          }
        })
      }
    },
  }
}
