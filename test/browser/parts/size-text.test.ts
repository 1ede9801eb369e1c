import { expect, test } from 'vitest'
import { sizeText } from '../../../runtime/browser/parts/size-text.ts'

test.for([
  [0, '0 bytes'],
  [1, '1 byte'],
  [999, '999 bytes'],
  [1000, '1.00 KB'],
  [9_437_184, '9.44 MB'],
  [2e12, '2.00 TB'],
] as const)('%s is shown as %s', ([bytes, text]) => {
  expect(sizeText(bytes)).toBe(text)
})
