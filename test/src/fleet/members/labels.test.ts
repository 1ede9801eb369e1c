import { expect, test } from 'vitest'
import { hasLabels, labelsOf, withoutLabels } from '../../../../src/fleet/members/labels.ts'
import { ApiError } from '../../../../src/lib/errors/api-error.ts'

const capabilities = { version: '1.0.0', node_types: ['pc', 'dynamips'] }

test('a compute has the labels of the administrator, those that it detected, and its kinds of node', () => {
  const found = { ...capabilities, labels: ['kvm', 'arch=x86_64'] }
  expect(labelsOf({ labels: ['site=berlin'], capabilities: found })).toEqual([
    ...['site=berlin', 'kvm', 'arch=x86_64', 'kind=pc', 'kind=dynamips'],
  ])
})

test('labels of the administrator take precedence, and a compute detects only labels of certain keys', () => {
  const found = { ...capabilities, labels: ['arch=x86_64', 'site=berlin', 'gpu'] }
  expect(labelsOf({ labels: ['arch=riscv64'], capabilities: found })).toEqual([
    ...['arch=riscv64', 'kind=pc', 'kind=dynamips'],
  ])
})

test('a wanted word without a value stands for any value, and case does not count', () => {
  const labels = ['kvm', 'site=Berlin']
  for (const wanted of [[], ['kvm'], ['site'], ['SITE=berlin', 'KVM']]) expect(hasLabels(labels, wanted)).toBe(true)
  for (const wanted of [['gpu'], ['kvm', 'site=paris'], ['kvm=yes'], ['berlin']])
    expect(hasLabels(labels, wanted)).toBe(false)
})

test('the error says which labels there are, or which computes with them are away', () => {
  const one = { name: 'one', labels: ['kvm', 'site=berlin', 'kind=pc'], isConnected: true }
  const two = { name: 'two', labels: ['site=berlin', 'kind=pc'], isConnected: false }
  const said = (...wanted: string[]) => {
    const { status, message, code } = withoutLabels(wanted, [one, two])
    return [status, message, code]
  }
  expect(withoutLabels(['gpu'], [])).toBeInstanceOf(ApiError)
  expect(said('kvm', 'site=paris')).toEqual([
    409,
    'placement.labels: no compute has kvm and site=paris; there are kvm (one), site=berlin (one, two)',
    'label-missing',
  ])
  expect(said('kind=iou')[1]).toContain('kind=pc (one, two)')
  expect(said('site=berlin')).toEqual([
    503,
    'placement.labels: the computes with site=berlin are not connected: two',
    'compute-unreachable',
  ])
  expect(said('kvm')).toEqual([409, 'placement.labels: the computes with kvm accept no new projects: one', 'conflict'])
})
