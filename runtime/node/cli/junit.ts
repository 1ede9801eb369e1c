import { access, constants, mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { DOMImplementation, type Document, type Element, XMLSerializer } from '@xmldom/xmldom'
import { counted } from '../../../src/lib/text/counted.ts'
import { replaceFiles } from '../engine/storage/user-file.ts'
import { reasonOf } from '../os/system/error-reason.ts'
import { CommandError, exits, wrongArguments } from './exits.ts'
import type { LabTestResult, TestPart } from './lab-test.ts'

/** A file for results, which can be written. */
export interface JunitFile {
  /** CommandError 1. */
  write(results: readonly LabTestResult[], seconds: number): Promise<void>
}

/** Makes sure that a file for results can be written, before the tests. CommandError 64. */
export async function junitFile(path: string): Promise<JunitFile> {
  try {
    await mkdir(dirname(path), { recursive: true })
    await access(dirname(path), constants.W_OK)
    if ((await stat(path).catch(() => undefined))?.isDirectory()) throw new Error('it is a directory, not a file')
  } catch (error) {
    throw wrongArguments(`--junit: ${path}: ${reasonOf(error)}`)
  }
  return {
    async write(results, seconds) {
      try {
        await replaceFiles([{ path, text: junitText(results, seconds) }])
      } catch (error) {
        throw new CommandError(exits.failed, `${path}: ${reasonOf(error)}`)
      }
    },
  }
}

/**
 * Results in the form that CI systems read: a suite for each lab, a case for each part and for each task, and the score as properties. Elements
 * and attributes are those of junit-10.xsd (github.com/jenkinsci/xunit-plugin), and `file` of a case, which GitLab shows (docs.gitlab.com, "Unit
 * test reports"). The line of a check has no attribute there, and stands in its output.
 */
function junitText(results: readonly LabTestResult[], seconds: number): string {
  const document = new DOMImplementation().createDocument(null, 'testsuites')
  const root = document.documentElement as Element
  const suites = results.map((result) => suiteOf(document, result))
  setAll(root, { name: 'patchbay test', ...totalOf(suites.map(({ counts }) => counts)), time: seconds })
  for (const { element } of suites) root.appendChild(element)
  return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(document, { requireWellFormed: true })}\n`
}

interface Counts {
  readonly tests: number
  readonly failures: number
  readonly errors: number
  readonly skipped: number
}

const totalOf = (all: readonly Counts[]): Counts => {
  const sum = (key: keyof Counts) => all.reduce((total, counts) => total + counts[key], 0)
  return { tests: sum('tests'), failures: sum('failures'), errors: sum('errors'), skipped: sum('skipped') }
}

function suiteOf(document: Document, result: LabTestResult) {
  const { lab, file, began, seconds, parts, tasks = [], score, errors, artifacts } = result
  const of = (state: TestPart['state']) => parts.filter((part) => part.state === state).length
  const hasErrors = errors.length > 0
  const counts: Counts = {
    tests: parts.length + tasks.length + (hasErrors ? 1 : 0),
    failures: of('failed') + tasks.filter(({ isDone }) => !isDone).length,
    errors: hasErrors ? 1 : 0,
    skipped: of('not run'),
  }
  const element = document.createElement('testsuite')
  // The schema wants an ISO 8601 time without a zone.
  const timestamp = began.toISOString().slice(0, 19)
  setAll(element, { name: lab, ...counts, time: seconds, timestamp, file })
  if (score !== undefined) {
    const properties = add(element, 'properties', {})
    add(properties, 'property', { name: 'score', value: score.points })
    add(properties, 'property', { name: 'points', value: score.of })
  }
  const left = artifacts === undefined ? [] : [`left in ${artifacts}`]
  for (const { name, state, seconds, saw, line } of parts) {
    const child = add(element, 'testcase', { name, classname: lab, time: seconds, file })
    if (state === 'not run') add(child, 'skipped', {})
    if (state === 'failed') {
      const message = saw?.split('\n')[0] ?? 'The check has failed'
      add(child, 'failure', { message, type: 'check' }).textContent = legal(saw ?? message)
    }
    const output = [...(line === undefined ? [] : [`${file}:${line}`]), ...(state === 'failed' ? left : [])]
    if (output.length > 0) add(child, 'system-out', {}).textContent = legal(output.join('\n'))
  }
  for (const { name, points, isDone, holding, checks } of tasks) {
    const child = add(element, 'testcase', { name, classname: `${lab} tasks`, time: 0, file })
    const message = `0 of ${counted(points, 'point')}: ${holding} of ${counted(checks, 'check')} passed`
    if (!isDone) add(child, 'failure', { message, type: 'task' }).textContent = message
  }
  if (hasErrors) {
    const child = add(element, 'testcase', { name: 'runs to its end', classname: lab, time: seconds, file })
    const messages = errors.map(({ message }) => message)
    add(child, 'error', { message: messages[0] ?? '', type: 'error' }).textContent = legal(messages.join('\n'))
  }
  return { element, counts }
}

function add(parent: Element, name: string, attributes: Parameters<typeof setAll>[1]): Element {
  const child = (parent.ownerDocument as Document).createElement(name)
  setAll(child, attributes)
  parent.appendChild(child)
  return child
}

/** Sets attributes; numbers are seconds or counts. */
function setAll(element: Element, attributes: Readonly<Record<string, string | number>>): void {
  for (const [name, value] of Object.entries(attributes)) {
    const text = typeof value === 'string' ? legal(value) : String(Math.round(value * 1000) / 1000)
    element.setAttribute(name, text)
  }
}

/** Without the characters that XML 1.0 has no form for (section 2.2): a guest may print any. */
const legal = (text: string): string =>
  text.replace(/[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu, '\u{fffd}')
