import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'

const program = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** Of what passes, axe would describe every element: that takes longer than to find what does not. */
const violationsAlone = { resultTypes: ['violations'], selectors: false }

// The rule compares a label with the text that is seen, which ends in an ellipsis where the name is long.
const all = {
  ...violationsAlone,
  rules: { 'label-content-name-mismatch': { enabled: false }, 'target-size': { enabled: true } },
}
const ofColours = { ...violationsAlone, runOnly: ['color-contrast', 'link-in-text-block'] }

/**
 * What axe finds on a page: the rule, how grave it is, and the first element. `isRecoloured`: only what depends on colours, as all else of
 * this screen was looked at in another theme.
 */
export async function accessibilityFaults(page: Page, { isRecoloured = false } = {}): Promise<string[]> {
  if (!(await page.evaluate('"axe" in globalThis'))) await page.evaluate(program)
  const options = isRecoloured ? ofColours : all
  const { violations } = (await page.evaluate(`axe.run(${JSON.stringify(options)})`)) as {
    violations: { id: string; impact: string; nodes: { html: string }[] }[]
  }
  return violations.map(({ id, impact, nodes }) => `${id} (${impact}): ${nodes[0]?.html}`)
}
