import type { FileHandle } from 'node:fs/promises'
import { inMebibytes, jsonBytes, sizeOf } from '../../../../src/labs/lab/lab-limits.ts'
import { storedValue, UnreadableLab } from '../../../../src/labs/lab/store.ts'
import { newerReason, recordVersion } from '../../engine/storage/newer-record.ts'

/** Bytes that are read at once. */
const chunkBytes = 256 * 1024
/** The end of a journal in which its head is looked for, bytes: first so many, then eight times as many, at most so many. */
const firstTail = 64 * 1024
const lastTail = 4 * 1024 * 1024
/** Memory is measured when a file may take more than the limit: JSON of small values takes this many times its size. */
const mostTimes = 20

/** What a journal has. */
export interface JournalContent {
  readonly entries: Map<string, unknown>
  /** Bytes up to the end of the last whole line. */
  readonly end: number
  /** Bytes of JSON of the entries, if that was measured. */
  readonly live?: number
}

/** The last whole line of a journal ends here, bytes; 0 when it has none. */
export async function endOf(file: FileHandle): Promise<number> {
  const { size } = await file.stat()
  for (let to = size, part = 4096; to > 0; to = Math.max(0, to - part), part = chunkBytes) {
    const from = Math.max(0, to - part)
    const at = (await read(file, from, to)).lastIndexOf(0x0a)
    if (at >= 0) return from + at + 1
  }
  return 0
}

/**
 * Reads a journal, one line after the other. Rejects with UnreadableLab when a line is not JSON, or of a newer version, or when the entries
 * would take more memory than `maxBytes`. A last line without an end was not acknowledged, and is left out.
 */
export async function readJournal(file: FileHandle, maxBytes: number): Promise<JournalContent> {
  const entries = new Map<string, unknown>()
  const { size } = await file.stat()
  const isMeasured = size * mostTimes > maxBytes
  let [end, number, memory] = [0, 0, 0]
  for await (const line of linesOf(file, maxBytes)) {
    number += 1
    for (const [key, value] of Object.entries(parsed(line, number))) {
      if (isMeasured) memory += sizeOf(value ?? undefined).memory - sizeOf(entries.get(key)).memory
      put(entries, key, value)
    }
    if (memory > maxBytes) throw tooLarge(memory, maxBytes)
    end += line.length + 1
  }
  if (!isMeasured) return { entries, end }
  return { entries, end, live: [...entries.values()].reduce<number>((sum, value) => sum + jsonBytes(value), 0) }
}

/**
 * Reads the head (entry `project`) of a journal from its end, where each edit has it. Undefined when it is not there: then the journal has
 * to be read. Rejects with UnreadableLab.
 */
export async function readHead(file: FileHandle): Promise<unknown> {
  const end = await endOf(file)
  for (let tail = firstTail; tail <= lastTail; tail *= 8) {
    const from = Math.max(0, end - tail)
    const bytes = await read(file, from, end)
    let to = bytes.length - 1
    while (to > 0) {
      const before = bytes.lastIndexOf(0x0a, to - 1)
      // The line may begin before this part of the file.
      if (before < 0 && from > 0) break
      const line = bytes.subarray(before + 1, to)
      if (line.includes('"project":') || line.includes('"version":')) {
        const { project } = parsed(line, undefined)
        if (project !== undefined) return project
      }
      to = before
    }
    if (from === 0) return undefined
  }
  return undefined
}

/** The head of a journal that was written as one line, from its first bytes; undefined when it does not begin with it. */
export async function firstHead(file: FileHandle): Promise<unknown> {
  const text = (await read(file, 0, chunkBytes)).toString()
  const begin = '{"project":'
  if (!text.startsWith(begin)) return undefined
  const object = objectAt(text, begin.length)
  try {
    return object === undefined ? undefined : storedValue(object)
  } catch {
    return undefined
  }
}

/** The text of the JSON object that begins at a position; undefined when the text ends before it. */
function objectAt(text: string, from: number): string | undefined {
  let depth = 0
  // Strings are skipped as a whole: they may have braces.
  for (const { 0: token, index } of text.slice(from).matchAll(/"(?:[^"\\]|\\.)*"|[{}]/gs)) {
    if (token === '{') depth += 1
    if (token === '}') depth -= 1
    if (depth === 0) return text.slice(from, from + index + token.length)
  }
  return undefined
}

export function put(entries: Map<string, unknown>, key: string, value: unknown): void {
  if (value === undefined || value === null) entries.delete(key)
  else entries.set(key, value)
}

/** The whole lines of a file, without their ends. */
async function* linesOf(file: FileHandle, maxBytes: number): AsyncGenerator<Buffer> {
  let parts: Buffer[] = []
  let length = 0
  for (let from = 0; ; ) {
    const bytes = await read(file, from, from + chunkBytes)
    if (bytes.length === 0) return
    from += bytes.length
    let begin = 0
    for (let at = bytes.indexOf(0x0a); at >= 0; at = bytes.indexOf(0x0a, begin)) {
      yield Buffer.concat([...parts, bytes.subarray(begin, at)])
      ;[parts, length] = [[], 0]
      begin = at + 1
    }
    parts.push(bytes.subarray(begin))
    length += bytes.length - begin
    if (length > maxBytes) throw tooLarge(length, maxBytes)
  }
}

async function read(file: FileHandle, from: number, to: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(to - from)
  const { bytesRead } = await file.read(buffer, 0, buffer.length, from)
  return buffer.subarray(0, bytesRead)
}

/** The entries of a line. `number`: of the line, if it is known. */
function parsed(line: Buffer, number: number | undefined): Record<string, unknown> {
  const which = number === undefined ? 'a line near its end' : `its line ${number}`
  let value: unknown
  try {
    value = storedValue(line.toString())
  } catch {
    throw new UnreadableLab(`its document is damaged: ${which} is not JSON`)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new UnreadableLab(`its document is damaged: ${which} is not an object of JSON`)
  const { version } = value as { version?: unknown }
  if (typeof version === 'number' && version > recordVersion) throw new UnreadableLab(newerReason(version))
  return value as Record<string, unknown>
}

const tooLarge = (bytes: number, maxBytes: number): UnreadableLab =>
  new UnreadableLab(
    `its document needs at least ${inMebibytes(bytes)} of memory, and all open projects together are limited to ${inMebibytes(maxBytes)} (limits.open_labs_mb)`,
  )
