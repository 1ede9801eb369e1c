import { expect, test } from 'vitest'
import { resolversOf } from '../../../../runtime/node/drivers/nat/names.ts'

test('the resolvers are those of the file, three at most, and the loopback without any', () => {
  expect(resolversOf('# nameserver 1.1.1.1\nsearch lab\nnameserver 10.0.0.1\n\tnameserver  fe80::1%eth0 \n')).toEqual([
    '10.0.0.1',
    'fe80::1%eth0',
  ])
  expect(resolversOf('nameserver a.b\nnameserver 1.2.3.4\n'.repeat(5))).toHaveLength(3)
  expect(resolversOf('')).toEqual(['127.0.0.1'])
})
