import { expect, test } from 'vitest'
import { commandLine } from '../../../../runtime/node/drivers/iou/command-line.ts'

const settings = {
  ...{ ethernet_adapters: 2, serial_adapters: 2, ram: 256, nvram: 128 },
  ...{ l1_keepalives: false, use_default_iou_values: true },
}
const line = (wanted: Partial<typeof settings>, hasKeepalives = true) =>
  commandLine({ settings: { ...settings, ...wanted }, facts: { hasKeepalives }, applicationId: 12 }).join(' ')

test.for([
  [{}, '12'],
  [{ ethernet_adapters: 0, serial_adapters: 16 }, '-e 0 -s 16 12'],
  [{ ethernet_adapters: 3 }, '-e 3 12'],
  [{ ram: 512 }, '12'],
  [{ use_default_iou_values: false }, '-n 128 -m 256 12'],
  [{ l1_keepalives: true }, '-l 12'],
  [
    {
      ...{ ethernet_adapters: 1, serial_adapters: 0, ram: 64, nvram: 8 },
      l1_keepalives: true,
      use_default_iou_values: false,
    },
    '-e 1 -s 0 -n 8 -m 64 -l 12',
  ],
] as const)('%j is %s', ([wanted, expected]) => {
  expect(line(wanted)).toBe(expected)
})

test('keepalives are refused by an image that does not know them', () => {
  expect(() => line({ l1_keepalives: true }, false)).toThrow(
    expect.objectContaining({ status: 409, message: expect.stringContaining('l1_keepalives') }),
  )
  expect(line({}, false)).toBe('12')
})
