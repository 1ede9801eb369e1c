import type { Score, ScoredTask } from '../../../src/labfile/score.ts'
import { counted } from '../../../src/lib/text/counted.ts'
import type { LogSection } from './ci-system.ts'
import { coloured, colours, heading } from './colours.ts'
import type { CommandDiagnostic } from './json-outputs.ts'
import type { LabSource } from './lab-file.ts'
import type { TestPart } from './lab-test.ts'
import { shown } from './table.ts'
import { columnsOf, wrapped } from './wrapping.ts'

/** Shows the test of one lab as it goes. */
export interface TestLines {
  part(part: TestPart): void
  tasks(tasks: readonly ScoredTask[], score: Score): void
  /** `running`: the name of the lab that keeps running; `artifacts`: the directory of what the test has left behind. */
  end(
    errors: readonly CommandDiagnostic[],
    left: { readonly running?: string | undefined; readonly artifacts?: string },
  ): void
}

/** Lines of output that a failed check shows. */
const maxLines = 12

/** A line for each part on standard output, at once; of labs that are tested at the same time at the end of each. With `--json` none. */
export function linesOf(
  { name, desired }: LabSource,
  { json, atOnce, section }: { readonly json: boolean; readonly atOnce: number; readonly section: LogSection },
): TestLines {
  if (json) return { part() {}, tasks() {}, end() {} }
  const waiting: string[] = []
  const write = (line: string) => {
    const fitting = wrapped(line, columnsOf(process.stdout))
    if (atOnce === 1) process.stdout.write(`${fitting}\n`)
    else waiting.push(fitting)
  }
  write(`${section.before}${heading(shown(desired.lab))}  ${colours.dim(shown(name))}`)
  return {
    part(part) {
      for (const line of partLines(part)) write(line)
    },
    tasks(tasks, score) {
      for (const task of tasks) write(taskLine(task))
      write(`  score: ${score.points} of ${counted(score.of, 'point')}`)
    },
    end(errors, { running, artifacts }) {
      for (const { message, hint } of errors)
        write(colours.red(shown(`  ${message}${hint === undefined ? '' : ` (${hint})`}`)))
      if (artifacts !== undefined) write(`  left in ${shown(artifacts)}`)
      if (running !== undefined)
        write(`  still running: patchbay inspect ${running}; patchbay down ${running} --delete`)
      const end = section.after()
      if (end !== '') write(end)
      if (waiting.length > 0) process.stdout.write(`${waiting.join('\n')}\n`)
    },
  }
}

/** `  done      2 of 2  The riser`: the points, and the name of the task. */
function taskLine({ name, points, isDone }: ScoredTask): string {
  const word = isDone ? colours.green('done'.padEnd(wordWidth)) : colours.yellow('open'.padEnd(wordWidth))
  return `  ${word}${`${isDone ? points : 0} of ${points}`.padStart(secondsWidth)}  ${shown(name)}`
}

const words = { ok: 'ok', failed: 'FAILED', 'not run': 'not run' } as const
const [wordWidth, secondsWidth] = [8, 7]

/** `  ok        0.3 s  PC1 pings PC2`, and below it what a failed check saw. */
function partLines({ name, state, seconds, saw }: TestPart): string[] {
  const time = state === 'not run' ? '' : `${seconds.toFixed(1)} s`
  const line = `  ${coloured(state, words[state].padEnd(wordWidth))}${time.padStart(secondsWidth)}  ${shown(name)}`
  if (saw === null) return [line]
  const indent = ' '.repeat(2 + wordWidth + secondsWidth + 2)
  const rows = saw.trim().split(/\r?\n/)
  return [line, ...rows.slice(-maxLines).map((row) => colours.dim(indent + shown(row.trimEnd())))]
}
