import { expect, test } from 'vitest'
import { hostnameOf } from '../../../../src/lib/text/host-name.ts'

test.for([
  ['R1', 'R1'],
  ['web server/2', 'web-server-2'],
  ['--edge--', 'edge'],
  ['日本', 'node'],
  // 63 characters at most, and no hyphen at the end.
  ['a'.repeat(70), 'a'.repeat(63)],
  [`${'a'.repeat(62)} b`, 'a'.repeat(62)],
])('%s is the host %s', ([name, host]) => {
  expect(hostnameOf(name as string)).toBe(host)
})
