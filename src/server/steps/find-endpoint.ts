import { isPreflight } from '../access/access.ts'
import { type RequestStep, targetOf } from '../request-context.ts'

/** Finds the endpoint of the path and the method, and answers OPTIONS. 404, 405. */
export const findEndpoint: RequestStep = (context, next) => {
  const { app, request, answerHeaders } = context
  const match = app.routes.find(request.method, targetOf(context))
  if ('methods' in match) {
    Object.assign(answerHeaders, optionsHeaders(request, match.methods))
    return { status: 204 }
  }
  answerHeaders['X-ROUTE'] = match.endpoint.path
  context.match = match
  return next()
}

function optionsHeaders(request: Request, methods: string): Record<string, string> {
  if (!isPreflight(request)) return { Allow: methods }
  return {
    Allow: methods,
    'Access-Control-Allow-Methods': methods,
    'Access-Control-Allow-Headers': request.headers.get('access-control-request-headers') ?? '*',
    'Access-Control-Max-Age': '600',
  }
}
