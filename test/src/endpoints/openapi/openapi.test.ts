import { Validator } from '@seriousme/openapi-schema-validator'
import { expect, test } from 'vitest'
import { endpoints } from '../../../../src/endpoints/endpoints.ts'
import { openapi } from '../../../../src/endpoints/openapi/openapi.ts'

interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly tags: readonly string[]
  readonly responses: Readonly<Record<string, { description: string }>>
  readonly parameters: readonly { name: string; in: string; description?: string }[]
}
interface Document {
  paths: Record<string, Record<string, Operation>>
  tags: { name: string }[]
  components: Record<'schemas' | 'parameters' | 'responses', Record<string, unknown>>
}
const document = openapi(endpoints, '1.2.3') as unknown as Document
/** What a reference leads to, and everything else as it is. */
function resolved<T>(value: T): T {
  const [, section = '', name = ''] =
    /^#\/components\/(\w+)\/([\w.-]+)$/.exec((value as { $ref?: string }).$ref ?? '') ?? []
  return section === '' ? value : (document.components[section as 'schemas'][name] as T)
}
/** With what it refers to in its place. */
const whole = ({ parameters, responses, ...rest }: Operation): Operation => ({
  ...rest,
  parameters: parameters.map(resolved),
  responses: Object.fromEntries(Object.entries(responses).map(([status, it]) => [status, resolved(it)])),
})
const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods).map(whole))

test('the document is valid OpenAPI 3.1', async () => {
  const { valid, errors } = await new Validator().validate(
    JSON.parse(JSON.stringify(document)) as Record<string, never>,
  )
  expect(errors).toBeUndefined()
  expect(valid).toBe(true)
})

test('every endpoint is in it, under its own path and method', () => {
  for (const { method, path } of endpoints) expect(document.paths[path]).toHaveProperty(method.toLowerCase())
  expect(operations).toHaveLength(endpoints.length)
})

test('operation ids are unique', () => {
  expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(operations.length)
})

test('every operation has a summary, and its errors', () => {
  for (const { summary, responses, parameters } of operations) {
    expect(summary).not.toBe('')
    expect(Object.keys(responses)).toEqual(expect.arrayContaining(['400', '401', '403']))
    for (const { description } of Object.values(responses)) expect(description).not.toBe('')
    for (const parameter of parameters) expect(parameter).toHaveProperty('description')
  }
})

test('every schema has a description, and no reference leads nowhere', () => {
  const text = JSON.stringify(document)
  for (const [, section = '', name = ''] of text.matchAll(/"#\/components\/(\w+)\/([\w.-]+)"/g)) {
    expect(document.components[section as 'schemas'][name]).toHaveProperty('description')
  }
})

test('schemas that occur several times are components', () => {
  expect(JSON.stringify(document).length).toBeLessThan(1_240_000)
  const paths = JSON.stringify(document.paths)
  for (const response of Object.values(document.components.responses)) {
    expect(paths).not.toContain(JSON.stringify(response))
  }
})

test('a group has operations of one API version, and no summary twice', () => {
  const versions = new Map<string, Set<string>>()
  const titles = new Set<string>()
  for (const [path, methods] of Object.entries(document.paths)) {
    const version = /^\/(v\d)\//.exec(path)?.[1] ?? 'none'
    for (const {
      tags: [tag = ''],
      summary,
    } of Object.values(methods)) {
      versions.set(tag, (versions.get(tag) ?? new Set()).add(version))
      expect([...titles], `${tag}: ${summary}`).not.toContain(`${tag}: ${summary}`)
      titles.add(`${tag}: ${summary}`)
    }
  }
  for (const [tag, its] of versions) expect([tag, [...its]]).toEqual([tag, [its.values().next().value]])
  const names = document.tags.map(({ name }) => name)
  expect(names.sort()).toEqual([...versions.keys()].sort())
  expect((openapi(endpoints, '1') as unknown as Document).tags[0]?.name).toBe('v2 compute projects')
})

test('every path parameter of a template is declared', () => {
  for (const [path, methods] of Object.entries(document.paths)) {
    const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
    for (const { parameters } of Object.values(methods).map(whole)) {
      expect(
        parameters
          .filter((it) => it.in === 'path')
          .map(({ name }) => name)
          .sort(),
      ).toEqual([...names].sort())
    }
  }
})
