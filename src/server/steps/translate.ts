import { matchOf, type RequestStep, targetOf } from '../request-context.ts'

/** Translates the request and the answer of a client of another program. 400, 413. */
export const translate: RequestStep = async (context, next) => {
  const { app, dialect, request, upgrade } = context
  if (dialect === undefined) return next()
  const { endpoint } = matchOf(context)
  // A forwarded answer is that of the endpoint there.
  const there = endpoint.forwardPath?.(targetOf(context))
  const shown = (there === undefined ? undefined : app.routes.match(request.method, there)?.endpoint) ?? endpoint
  context.request = await dialect.translateRequest(request, shown, app.options.jsonBytes)
  context.upgrade = dialect.upgrade((_, open) => upgrade(request, open), shown, request)
  return dialect.translateAnswer(await next(), shown, request)
}
