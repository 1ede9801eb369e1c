import { type Answer, noContent } from '../http/endpoint.ts'

/** Answers 204 when the work is done. */
export async function noContentAfter(work: Promise<unknown>): Promise<Answer> {
  await work
  return noContent
}
