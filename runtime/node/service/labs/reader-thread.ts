import { parentPort } from 'node:worker_threads'
import { type ReaderName, readers } from '../../../../src/importers/readers.ts'
import { ApiError } from '../../../../src/lib/errors/api-error.ts'
import type { FileToRead, ReadAnswer } from './reader-threads.ts'

/** Reads files of clients, one after the other: takes {name, input}, answers with the result or the error. */
parentPort?.on('message', (file: FileToRead) => void answer(file))

async function answer({ name, input }: FileToRead): Promise<void> {
  parentPort?.postMessage(await answerTo(name, input))
}

async function answerTo(name: ReaderName, input: unknown): Promise<ReadAnswer> {
  try {
    return { result: await readers[name](input as never) }
  } catch (error) {
    if (!(error instanceof ApiError))
      return { defect: error instanceof Error ? (error.stack ?? error.message) : String(error) }
    const { status, message, code, extra, headers } = error
    return { refusal: { status, message, options: { ...extra, code, headers } } }
  }
}
