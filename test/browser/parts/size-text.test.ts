import { expect, test } from 'vitest'
import { imageSizeText, sizeText } from '../../../runtime/browser/parts/size-text.ts'

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

test.for([
  [{ filesize: 1000 }, '1.00 KB'],
  [{ filesize: 197_000, virtual_size: 2 ** 30 }, '1 GB (file: 197 KB)'],
  [{ filesize: 262_144, virtual_size: 1.5 * 2 ** 40 }, '1.5 TB (file: 262 KB)'],
] as const)('an image of %o is shown as %s', ([image, text]) => {
  expect(imageSizeText(image)).toBe(text)
})
