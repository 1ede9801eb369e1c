import { onAbort } from '../../../src/lib/async/abort.ts'

type Fetch = (url: string, init: RequestInit) => Promise<Response>

/** Sends requests, and says how many bytes of the body were sent: `fetch` of browsers does not report that. */
export const fetchWithProgress =
  (onSent: (bytes: number) => void): Fetch =>
  (url, { method = 'GET', headers, body, signal }) =>
    new Promise((resolve, reject) => {
      signal?.throwIfAborted()
      const request = new XMLHttpRequest()
      const forget = onAbort(signal ?? undefined, () => request.abort())
      request.open(method, url)
      for (const [name, value] of new Headers(headers)) request.setRequestHeader(name, value)
      request.responseType = 'blob'
      request.upload.onprogress = ({ loaded }) => onSent(loaded)
      request.onload = () => {
        const { status, response } = request
        resolve(new Response(response, { status, headers: headersIn(request.getAllResponseHeaders()) }))
      }
      request.onerror = () => reject(new TypeError('the connection was interrupted'))
      request.onabort = () => reject(signal?.reason)
      request.onloadend = forget
      request.send(body as XMLHttpRequestBodyInit)
    })

const headersIn = (text: string): Headers =>
  new Headers(
    text
      .trim()
      .split('\r\n')
      .map((line): [string, string] => {
        const colon = line.indexOf(':')
        return [line.slice(0, colon), line.slice(colon + 1).trim()]
      }),
  )
