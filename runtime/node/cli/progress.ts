import type { Options, SingleBar } from 'cli-progress'

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

/** The progress of some work, such as `Starting wan-edge`. With `--json` it is shown as JSON lines on standard error. */
export async function progressOf(title: string, { json }: { readonly json: boolean }): Promise<Progress> {
  if (json) return lines((done, total, what) => JSON.stringify({ progress: title, done, total, what }))
  if (process.stderr.isTTY !== true)
    return lines((done, total, what) => `${title}: ${done} of ${total} ${what}`.trimEnd())
  const began = Date.now()
  let bar: SingleBar | undefined
  const { SingleBar: Bar } = (await import('cli-progress')).default
  return {
    at(done, total, what = '') {
      if (bar === undefined) {
        if (Date.now() - began < silentMs) return
        bar = new Bar(options)
        bar.start(total, done, { title, what })
      }
      bar.setTotal(total)
      bar.update(done, { what })
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
