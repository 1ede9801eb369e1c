import { ApiError } from '../../lib/errors/api-error.ts'
import { errorHeader } from '../../lib/errors/error-codes.ts'
import type { JsonAnswer } from '../http/endpoint.ts'
import type { RequestContext, RequestStep } from '../request-context.ts'

/** Answers with the error that the other steps have thrown: `{message, status}`, and its code in `X-Patchbay-Error`. */
export const answerErrors: RequestStep = async (context, next) => {
  try {
    return await next()
  } catch (error) {
    const { dialect, request, answerHeaders } = context
    const answer = errorAnswer(context, error)
    if (answerHeaders[errorHeader] === 'no-such-path' && isOfReader(request)) return noSuchPage()
    return (await dialect?.translateAnswer(answer, undefined, request, answerHeaders[errorHeader])) ?? answer
  }
}

function errorAnswer({ app, id, path, request, answerHeaders }: RequestContext, error: unknown): JsonAnswer {
  const { apiErrorOf, report } = app.options.runtime
  const known = error instanceof ApiError ? error : apiErrorOf?.(error)
  if (known === undefined && !request.signal.aborted) report(error, id)
  const { status, code, extra, message, headers: more } = known ?? unexpected(request.signal.aborted)
  Object.assign(answerHeaders, more, { [errorHeader]: code })
  return { status, body: { message: inVersionOf(path, message), status, ...extra } }
}

/** Whether a person reads the answer, who has typed an address in a browser: programs and scripts do not ask for HTML. */
const isOfReader = ({ method, headers }: Request): boolean =>
  method === 'GET' && headers.get('accept')?.includes('text/html') === true

const noSuchPage = (): Response =>
  new Response(
    `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>No such page – Patchbay</title>
<style>:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif } body { margin: 20vh auto; max-width: 30em; padding: 0 1em }</style>
<h1>No such page</h1>
<p>There is nothing at this address. <a href="/">To the labs</a>, or to <a href="/docs">the reference of the HTTP API</a>.
</html>
`,
    {
      status: 404,
      headers: {
        'Content-Type': 'text/html; charset=utf-8',
        'Content-Security-Policy': "default-src 'none'; style-src 'unsafe-inline'",
      },
    },
  )

const unexpected = (isAborted: boolean): ApiError =>
  isAborted ? new ApiError(408, 'The client aborted the request') : new ApiError(500, 'Internal Server Error')

/** A message for the client of a version: v1 has the resources of computes below a path of its own. */
const inVersionOf = (path: string, message: string): string =>
  path.startsWith('/v1/') ? message.replaceAll('/v2/compute/', '/v1/') : message
