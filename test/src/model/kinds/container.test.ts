import { Check } from '@sinclair/typebox/value'
import { expect, test } from 'vitest'
import { containerSettings } from '../../../../src/model/kinds/container.ts'

const { environment, sysctls } = containerSettings

test.each([
  ['', true],
  ['A=1', true],
  ['A=b=c\n\nB=\n', true],
  ['A b=1', true],
  ['A', false],
  ['=1', false],
  ['A=1\nB', false],
  ['A=1\n B=2', false],
])('the variables %j are taken: %s', (text, isTaken) => {
  expect(Check(environment, text)).toBe(isTaken)
})

test.each([
  ['', true],
  ['net.ipv4.ip_forward=1\nnet.ipv6.conf.all.forwarding=1\n', true],
  ['net=1', false],
  ['kernel.msgmax=1', false],
  ['net.ipv4.ip_forward=1\nkernel.msgmax=1', false],
])('the parameters %j are taken: %s', (text, isTaken) => {
  expect(Check(sysctls, text)).toBe(isTaken)
})

test('a long text of equals signs that is wrong at its end is refused at once', () => {
  const begun = performance.now()
  expect(Check(environment, `${'a='.repeat(30_000)}\n=`)).toBe(false)
  expect(Check(sysctls, `${'net.a='.repeat(10_000)}\n=`)).toBe(false)
  expect(Check(environment, `A=${'\n'.repeat(60_000)}=`)).toBe(false)
  expect(performance.now() - begun).toBeLessThan(1000)
})
