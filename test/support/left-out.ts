import type { Reporter, TestCase, TestModule, Vitest } from 'vitest/node'

const noReason = 'without a reason:'

/** Tells at the end of a run which tests were left out, and why. */
export default class LeftOut implements Reporter {
  #vitest: Vitest | undefined

  onInit(vitest: Vitest): void {
    this.#vitest = vitest
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    // A filter by names leaves tests out, too.
    if (this.#vitest?.config.testNamePattern !== undefined) return
    const counts = new Map<string, number>()
    const skipped = modules.flatMap((it) => [...it.children.allTests('skipped')])
    for (const reason of skipped.map(reasonOf)) counts.set(reason, (counts.get(reason) ?? 0) + 1)
    if (counts.size === 0) return
    const unexplained = skipped.filter((it) => reasonOf(it) === noReason).map(({ fullName }) => `        ${fullName}`)
    const lines = [...counts]
      .sort(([, a], [, b]) => b - a)
      .map(([reason, count]) => `${`${count}`.padStart(6)}  ${reason}`)
    this.#vitest?.logger.log(['', ` Left out: ${skipped.length} tests`, ...lines, ...unexplained, ''].join('\n'))
  }
}

function reasonOf(test: TestCase): string {
  const result = test.result()
  return (result.state === 'skipped' ? result.note : undefined) ?? test.meta().leftOut ?? noReason
}
