import { randomUUID } from 'node:crypto'
import { appendFile } from 'node:fs/promises'
import { relative, resolve } from 'node:path'
import { escapeUnsafe } from '../../../src/lib/text/escape.ts'
import { reasonOf } from '../os/system/error-reason.ts'
import type { LabTestResult, TestPart } from './lab-test.ts'

/** What a CI system is told of tests beside the lines for people. Its environment says which one it is. */
export interface CiSystem {
  /** Before the first line, and after the last one. */
  begin(): void
  end(results: readonly LabTestResult[]): Promise<void>
  /** Begins the lines of a lab: what stands before them, and what ends them. */
  section(lab: string): LogSection
}

export interface LogSection {
  readonly before: string
  after(): string
}

const none: CiSystem = { begin() {}, end: async () => {}, section: () => ({ before: '', after: () => '' }) }

/** The CI system that runs this command. `json`: standard output is one JSON object. */
export function ciSystem({ json }: { readonly json: boolean }, env: NodeJS.ProcessEnv = process.env): CiSystem {
  if (env.GITHUB_ACTIONS === 'true') return gitHub(json, env)
  if (env.GITLAB_CI === 'true' && !json) return gitLab()
  return none
}

/**
 * GitHub Actions (docs.github.com, "Workflow commands for GitHub Actions"): failed checks as annotations, and a table in the summary of the job.
 * A guest may print what the runner takes for a command, so commands are off while lines of guests are printed.
 */
function gitHub(json: boolean, env: NodeJS.ProcessEnv): CiSystem {
  const output = json ? process.stderr : process.stdout
  const token = randomUUID()
  const { GITHUB_WORKSPACE: root = '.', GITHUB_STEP_SUMMARY: summary } = env
  return {
    ...none,
    begin: () => void output.write(`::stop-commands::${token}\n`),
    async end(results) {
      output.write(`::${token}::\n`)
      for (const { title, message, file, line } of results.flatMap(faultsIn)) {
        const place = file === 'stdin' ? {} : { file: relative(root, resolve(file)), line }
        const members = Object.entries({ ...place, title }).filter(([, value]) => value !== undefined)
        const text = members.map(([key, value]) => `${key}=${escaped(String(value), true)}`).join(',')
        output.write(`::error ${text}::${escaped(message, false)}\n`)
      }
      if (summary === undefined || summary === '') return
      await appendFile(summary, summaryText(results)).catch((error: unknown) => {
        process.stderr.write(`${summary}: ${reasonOf(error)}\n`)
      })
    },
  }
}

/** GitLab (docs.gitlab.com, "Custom collapsible sections"): a section for each lab. */
function gitLab(): CiSystem {
  const mark = (what: string, name: string) =>
    `\u001b[0Ksection_${what}:${Math.floor(Date.now() / 1000)}:${name}\r\u001b[0K`
  let number = 0
  return {
    ...none,
    section(lab) {
      number += 1
      const name = `${lab}_${number}`
      return { before: mark('start', name), after: () => mark('end', name) }
    },
  }
}

interface Fault {
  readonly title: string
  readonly message: string
  readonly file: string
  readonly line: number | undefined
}

/** What a person must look at. */
function faultsIn({ lab, file, parts, errors }: LabTestResult): Fault[] {
  const failed = parts.filter(({ state }) => state === 'failed')
  return [
    ...failed.map(({ name, saw, line }) => ({
      title: `${lab}: ${name}`,
      message: saw ?? 'The check has failed',
      file,
      line,
    })),
    ...errors.map(({ message, line }) => ({ title: lab, message, file, line })),
  ]
}

/** A value of a workflow command; that of a member ends at commas, too. */
function escaped(text: string, isMember: boolean): string {
  const plain = text.slice(0, 2000).replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A')
  return isMember ? plain.replaceAll(':', '%3A').replaceAll(',', '%2C') : plain
}

/** Most bytes of the table: GitHub drops a summary of more than 1 MiB. */
const maxSummary = 500_000

/** A table of the parts of all tests, in Markdown. */
function summaryText(results: readonly LabTestResult[]): string {
  const rows = results.flatMap(({ lab, parts, errors }) => [
    ...parts.map((part) => [lab, part.name, words[part.state], timeOf(part), part.saw ?? '']),
    ...errors.map(({ message }) => [lab, '', '❌ error', '', message]),
  ])
  const lines: string[] = []
  let size = 0
  for (const row of rows) {
    const line = `| ${row.map(plainCell).join(' | ')} |`
    size += Buffer.byteLength(line)
    if (size > maxSummary) break
    lines.push(line)
  }
  const left = rows.length - lines.length
  const more = left > 0 ? ['', `${left} more rows are left out.`] : []
  return ['| lab | check | result | time | saw |', '|---|---|---|---:|---|', ...lines, ...more, '', ''].join('\n')
}

const words = { ok: '✅ ok', failed: '❌ failed', 'not run': '⚪ not run' } as const
const timeOf = ({ state, seconds }: TestPart): string => (state === 'not run' ? '' : `${seconds.toFixed(1)} s`)

/** A text in a cell of a table, without any meaning in Markdown. */
const plainCell = (text: string): string =>
  escapeUnsafe(text.replace(/\s+/g, ' ').slice(0, 300)).replace(
    /[\\`*_{}[\]<>()#+!|~&@$:.-]/g,
    (it) => `&#${it.charCodeAt(0)};`,
  )
