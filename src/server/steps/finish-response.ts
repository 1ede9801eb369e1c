import { finish, withoutBody } from '../finish.ts'
import type { RequestStep } from '../request-context.ts'

/**
 * Turns the answer into a Response with the headers that steps and handlers have noted in the context. docs/architecture.md lists the answers
 * that do not pass here.
 */
export const finishResponse: RequestStep = async (context, next) => {
  const { app, method, answerHeaders } = context
  const answer = await next()
  if (context.answeredElsewhere === true) return answer
  const response = finish(answer, answerHeaders, app.options.runtime)
  return method === 'HEAD' ? withoutBody(response) : response
}
