import { joinPath } from '../../../../src/endpoints/v2/fleet/join.ts'
import { contentAtHeader, keptImagesPath } from '../../../../src/model/kept-image.ts'
import { reasonOf } from '../../os/system/error-reason.ts'
import { joinUrl } from './joiner.ts'

/** A segment that the gateway has sealed: it leads to no other path. */
const sealed = /^\w[\w.%-]*$/

/**
 * Gives an upload from the gateway its content, when the request says at which path of the gateway that is. The result is the whole request, or
 * the answer that there is no content. Only the gateway that this compute joins, `url`, is asked, and without credentials.
 */
export function contentAtGateway(url: string): (request: Request) => Promise<Request | Response> {
  const base = joinUrl(url).replace(/^ws/, 'http').slice(0, -joinPath.length)
  return async (request) => {
    const path = request.headers.get(contentAtHeader)
    if (path === null) return request
    if (!path.startsWith(keptImagesPath) || !sealed.test(path.slice(keptImagesPath.length)))
      return refusal(400, `${contentAtHeader}: a path of images at the gateway is needed`)
    try {
      const headers = { 'Accept-Encoding': 'identity' }
      const answer = await fetch(base + path, { headers, redirect: 'error', signal: request.signal })
      if (answer.status !== 200) return refusal(502, `The gateway has no image there: ${answer.status}`)
      return uploadOf(request, answer)
    } catch (error) {
      return refusal(502, `The image cannot be read at the gateway: ${reasonOf(error)}`)
    }
  }
}

function uploadOf(request: Request, answer: Response): Request {
  const headers = new Headers(request.headers)
  headers.delete(contentAtHeader)
  const length = answer.headers.get('content-length')
  if (length !== null) headers.set('content-length', length)
  const { url, method, signal } = request
  const whole = { method, headers, signal, body: answer.body, duplex: 'half' }
  return new Request(url, whole)
}

const refusal = (status: number, message: string): Response => Response.json({ message, status }, { status })
