import { type JsonAnswer, noContent } from '../../server/http/endpoint.ts'

/** Answers 204 when the work is done. */
export async function noContentAfter(work: Promise<unknown>): Promise<JsonAnswer> {
  await work
  return noContent
}
