import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { firstPort, lastPort } from '../../../support/port-leases.ts'

const tests = join(import.meta.dirname, '../../..')
// VPCS shows a port of its own, which is bound nowhere.
const port =
  /(?:ports?: ?|_range: \[|(?<!RHOST:PORT {2}: )127\.0\.0\.1:|peer\(|connect\(|listen\(|bind\()(\d[\d_]{3,6})\b/g

test('no test has the literal number of a port that another test may lease', () => {
  const named = globSync('**/*.ts', { cwd: tests }).flatMap((file) => {
    const found = readFileSync(join(tests, file), 'utf8').matchAll(port)
    return [...found].map(([, number = '']) => [file, Number(number.replaceAll('_', ''))] as const)
  })
  expect(named.length).toBeGreaterThan(10)
  expect(named.filter(([, number]) => number >= firstPort && number <= lastPort)).toEqual([])
})
