import { Type } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { MetricFamily, single } from '../../../../src/model/metrics.ts'
import { exposition } from '../../../../src/server/http/exposition.ts'
import { RequestMetrics } from '../../../../src/server/http/request-metrics.ts'
import { figure, parseExposition } from '../../../support/exposition.ts'

test('a family has its help, its type and its values', () => {
  const family: MetricFamily = {
    name: 'lab_nodes',
    help: 'Nodes, by kind.',
    type: 'gauge',
    samples: [
      { labels: { kind: 'pc', status: 'stopped' }, value: 2 },
      { labels: { kind: 'pc', status: 'started' }, value: 1.5 },
    ],
  }
  expect(exposition([family, single('lab_info', 'gauge', 'It is there.', 1)])).toBe(
    [
      '# HELP lab_info It is there.',
      '# TYPE lab_info gauge',
      'lab_info 1',
      '# HELP lab_nodes Nodes, by kind.',
      '# TYPE lab_nodes gauge',
      'lab_nodes{kind="pc",status="started"} 1.5',
      'lab_nodes{kind="pc",status="stopped"} 2',
      '',
    ].join('\n'),
  )
  expect(exposition([])).toBe('')
})

test('backslashes and line ends are escaped everywhere, quotes only in labels', () => {
  const text = exposition([
    { name: 'a', help: 'say "\\n"\nand go', type: 'counter', samples: [{ labels: { b: '"\\n"\n{é}' }, value: 1 }] },
  ])
  expect(text).toBe('# HELP a say "\\\\n"\\nand go\n# TYPE a counter\na{b="\\"\\\\n\\"\\n{é}"} 1\n')
})

test('numbers are written as scrapers read them', () => {
  const line = (value: number) => exposition([single('a', 'gauge', '', value)]).split('\n')[2]
  expect([0, -0, 1e21, 1e-7, 0.1, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY].map(line)).toEqual(
    ['0', '0', '1e+21', '1e-7', '0.1', 'NaN', '+Inf', '-Inf'].map((it) => `a ${it}`),
  )
})

test('any help and labels can be read back, and the order of the families does not matter', () => {
  const odd = fc.oneof(
    fc.string({ unit: 'grapheme' }),
    fc.string({ unit: fc.constantFrom('\\', '"', '\n', 'n', '{', '}', ',', '=') }),
  )
  const name = fc.stringMatching(/^[a-zA-Z_:][a-zA-Z0-9_:]{0,8}$/)
  const labelName = fc.stringMatching(/^[a-zA-Z_][a-zA-Z0-9_]{0,4}$/)
  const family = fc.record({
    name,
    help: odd,
    type: fc.constantFrom('counter' as const, 'gauge' as const),
    samples: fc.uniqueArray(
      fc.record({
        labels: fc.dictionary(labelName, odd, { maxKeys: 3, noNullPrototype: true }),
        value: fc.double({ noNaN: true }),
      }),
      { maxLength: 4, selector: ({ labels }) => JSON.stringify(Object.entries(labels).sort()) },
    ),
  })
  fc.assert(
    fc.property(fc.uniqueArray(family, { maxLength: 4, selector: (it) => it.name }), (families) => {
      const text = exposition(families)
      expect(exposition(families.toReversed())).toBe(text)
      const read = parseExposition(text)
      expect([...read.keys()]).toEqual(families.map((it) => it.name).sort())
      for (const { name, help, samples } of families) {
        expect(read.get(name)?.help).toBe(help)
        for (const { labels, value } of samples) expect(figure(read, name, labels)).toBe(value === 0 ? 0 : value)
      }
    }),
  )
})

test('requests are counted by method, route and class of status, for any method and path', () => {
  const requests = new RequestMetrics()
  const ask = (route: string, method: string, status: number, seconds = 0) => {
    requests.begin()
    requests.end(route, method, status, seconds)
  }
  ask('/b', 'GET', 200)
  ask('/a', 'GET', 200)
  ask('/a', 'GET', 204)
  ask('/a', 'HEAD', 404)
  ask('/a', 'GET', 101)
  ask('', 'PROPFIND', 405)
  ask('', 'get', 599)
  ask('', 'BREW', 405)
  requests.begin()
  const families = parseExposition(exposition(requests.families()))
  const count = (route: string, method: string, status: string) =>
    figure(families, 'patchbay_http_requests_total', { method, route, status })
  expect(count('/b', 'GET', '2xx')).toBe(1)
  expect(count('/a', 'GET', '2xx')).toBe(2)
  expect(count('/a', 'HEAD', '4xx')).toBe(1)
  expect(count('/a', 'GET', '1xx')).toBe(1)
  expect(count('', 'other', '4xx')).toBe(2)
  expect(count('', 'other', '5xx')).toBe(1)
  expect(families.get('patchbay_http_requests_total')?.samples).toHaveLength(6)
  expect(figure(families, 'patchbay_http_requests_in_flight')).toBe(1)
})

test('a duration is in every bucket whose bound it does not exceed', () => {
  const requests = new RequestMetrics()
  for (const seconds of [0, 0.001, 0.0011, 0.5, 4, 5, 60]) {
    requests.begin()
    requests.end('/a', 'GET', 200, seconds)
  }
  const text = exposition(requests.families())
  const lines = text.split('\n').filter((line) => line.startsWith('patchbay_http_request_duration_seconds'))
  expect(lines).toEqual([
    ...['0.001"} 2', '0.005"} 3', '0.01"} 3', '0.05"} 3', '0.1"} 3', '0.5"} 4', '1"} 4', '5"} 6', '+Inf"} 7'].map(
      (it) => `patchbay_http_request_duration_seconds_bucket{route="/a",le="${it}`,
    ),
    'patchbay_http_request_duration_seconds_sum{route="/a"} 69.5021',
    'patchbay_http_request_duration_seconds_count{route="/a"} 7',
  ])
  expect(Check(Type.Array(MetricFamily), requests.families())).toBe(true)
})
