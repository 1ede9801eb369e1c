import type { LabPlan } from '../../../src/client/patchbay.ts'
import { CommandError, exits } from './exits.ts'
import type { CommandDiagnostic } from './json-outputs.ts'
import type { LabSource } from './lab-file.ts'
import { shown, tableOf } from './table.ts'

/** A node that cannot run, and why. */
export interface NodeThatCannotRun {
  readonly name: string
  readonly images: readonly string[]
  readonly reason: string
  readonly line?: number
  readonly column?: number
}

/** The nodes that are placeholders after a plan; of an imported lab with their places in the file of the user. */
export function nodesThatCannotRun({ imported }: LabSource, { cannot_run = [] }: LabPlan): NodeThatCannotRun[] {
  const origins = new Map(imported?.map((node) => [node.name, node]))
  return cannot_run.map(({ name, images, reason }) => {
    const { cannotRun, hint, line, column } = origins.get(name) ?? {}
    if (cannotRun !== undefined) return { name, images: [], reason: cannotRun, ...placeOf(line, column) }
    return { name, images, reason: hint === undefined ? reason : `${reason}: ${hint}`, ...placeOf(line, column) }
  })
}

const placeOf = (line: number | undefined, column: number | undefined) =>
  line === undefined || column === undefined ? {} : { line, column }

const nodesIn = ({ desired }: LabSource): number => desired.nodes.filter(({ segment }) => segment === undefined).length

const countOf = (source: LabSource, nodes: readonly NodeThatCannotRun[]): string =>
  `${nodesIn(source) - nodes.length} of ${nodesIn(source)} nodes can run`

/** CommandError 3 with all nodes that cannot run. */
export function requireAllRun(source: LabSource, plan: LabPlan): void {
  const nodes = nodesThatCannotRun(source, plan)
  if (nodes.length === 0) return
  const diagnostics: CommandDiagnostic[] = nodes.map(({ name, reason, line, column }) => ({
    message: `${name} cannot run: ${reason}`,
    file: source.name,
    ...placeOf(line, column),
  }))
  throw new CommandError(exits.wrong, [...diagnostics, ...waysOut(source, nodes)])
}

/** What somebody can do about nodes that cannot run: upload their images, or start the others. */
export function waysOut(source: LabSource, nodes: readonly NodeThatCannotRun[]): CommandDiagnostic[] {
  const images = nodes.flatMap((node) => node.images)
  const uploads =
    images.length === 0 ? [] : [{ message: `"patchbay images push FILE --name ${images[0]}" uploads an image` }]
  const hint = `"patchbay up ${source.name} --partial" starts these, and creates the others as placeholders`
  return [...uploads, { message: countOf(source, nodes), hint }]
}

/** What is missing, for people. */
export const cannotRunText = (source: LabSource, nodes: readonly NodeThatCannotRun[]): string =>
  [
    `${countOf(source, nodes)}; the others are placeholders:`,
    tableOf(
      ['NODE', 'WHY IT CANNOT RUN'],
      nodes.map(({ name, reason }) => [name, shown(reason)]),
    ),
  ].join('\n')
