import type { Options, SingleBar } from 'cli-progress'
import { escapeUnsafe } from '../../../src/lib/text/escape.ts'
import { bytesText } from './bytes.ts'

/** Shows how far long work is: on a terminal as a line that changes, else as a line for each change. */
export interface Progress {
  at(done: number, total: number, what?: string): void
  /** Removes the changing line; a later `at` shows it again. */
  end(): void
}

/** Shows nothing. */
export const noProgress: Progress = { at() {}, end() {} }

/** Work that is over before this shows nothing on a terminal, ms. */
const silentMs = 150

/**
 * The progress of some work, such as `Starting wan-edge`. With `--json` it is shown as JSON lines on standard error. `unit`: what is
 * counted; of bytes, lines are for each tenth.
 */
export async function progressOf(
  title: string,
  { json, unit }: { readonly json: boolean; readonly unit?: 'bytes' },
): Promise<Progress> {
  const isBytes = unit === 'bytes'
  if (json || process.stderr.isTTY !== true) {
    const text = (done: number, total: number, what: string) => {
      if (json) return JSON.stringify({ progress: title, done, total, what })
      const count = isBytes ? `${bytesText(done)} of ${bytesText(total)}` : `${done} of ${total} ${what}`
      return escapeUnsafe(`${title}: ${count}`.trimEnd())
    }
    return isBytes ? tenths(lines(text)) : lines(text)
  }
  const began = Date.now()
  let bar: SingleBar | undefined
  const { SingleBar: Bar } = (await import('cli-progress')).default
  return {
    at(done, total, what = '') {
      if (bar === undefined) {
        if (Date.now() - began < silentMs) return
        bar = new Bar({ ...options, ...(isBytes && byteOptions) })
        bar.start(total, done, { title: escapeUnsafe(title), what: escapeUnsafe(what), part: '' })
      }
      bar.setTotal(total)
      bar.update(done, { what: escapeUnsafe(what), part: isBytes ? `${bytesText(done)} of ${bytesText(total)}` : '' })
    },
    end() {
      bar?.stop()
      bar = undefined
    },
  }
}

const options: Options = {
  format: '{title} {bar} {value} of {total} {what}',
  stream: process.stderr,
  barsize: 20,
  barCompleteChar: '█',
  barIncompleteChar: '░',
  clearOnComplete: true,
  stopOnComplete: false,
  // A signal ends the command in its own way.
  gracefulExit: false,
}

const byteOptions: Options = { format: '{title} {bar} {percentage}% {part} {eta_formatted}' }

/** Passes on the first progress of each tenth of the work. */
function tenths(progress: Progress): Progress {
  let last = -1
  return {
    at(done, total, what) {
      const tenth = Math.floor((10 * done) / total)
      if (tenth > last) progress.at(done, total, what)
      last = Math.max(last, tenth)
    },
    end: () => progress.end(),
  }
}

function lines(text: (done: number, total: number, what: string) => string): Progress {
  let last = ''
  return {
    at(done, total, what = '') {
      const line = text(done, total, what)
      if (line !== last) process.stderr.write(`${line}\n`)
      last = line
    },
    end() {},
  }
}
