import { expect, test } from 'vitest'
import { computeNameView, computeView } from '../../../../src/endpoints/compute/compute-view.ts'
import type { Compute } from '../../../../src/model/compute.ts'

const compute: Compute = {
  ...{ compute_id: 'one', name: 'http://anna@192.0.2.7:3080', protocol: 'http', host: '192.0.2.7', port: 3080 },
  ...{ user: 'anna', connected: false, accepts_projects: true, weight: 1, labels: [] },
  ...{ cpu_usage_percent: null, memory_usage_percent: null, capabilities: { version: null, node_types: ['pc'] } },
  last_error: 'http://192.0.2.7:3080 refuses the credentials of anna',
}

test('credentials for some projects see neither the address of a compute nor the user there', () => {
  const scoped = { projects: { isWhole: false }, aliasOf: (kind: string) => kind } as never
  const whole = { projects: { isWhole: true }, aliasOf: (kind: string) => kind } as never
  expect(JSON.stringify(computeView(compute, scoped))).not.toMatch(/anna|192\.0\.2\.7|3080/)
  expect(computeView(compute, scoped)).toMatchObject({ compute_id: 'one', name: 'one', connected: false })
  expect(computeView(compute, whole)).toEqual(compute)
  expect(computeNameView({ ...compute, name: 'rack 1' }, scoped)).toBe('rack 1')
})
