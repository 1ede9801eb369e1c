import { Validator } from '@seriousme/openapi-schema-validator'
import { expect, test } from 'vitest'
import { openapi } from '../../src/openapi.ts'
import { endpoints } from '../../src/routes/index.ts'

interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly responses: Readonly<Record<string, { description: string }>>
  readonly parameters: readonly { name: string; in: string; description?: string }[]
}
const document = openapi(endpoints, '1.2.3') as {
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, unknown> }
}
const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods))

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

test('every operation says what it is for, and what may be wrong with the request', () => {
  for (const { summary, responses, parameters } of operations) {
    expect(summary).not.toBe('')
    expect(Object.keys(responses)).toEqual(expect.arrayContaining(['400', '401', '403']))
    for (const { description } of Object.values(responses)) expect(description).not.toBe('')
    for (const parameter of parameters) expect(parameter).toHaveProperty('description')
  }
})

test('every schema has a description, and no reference leads nowhere', () => {
  const text = JSON.stringify(document)
  for (const [, name] of text.matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
    expect(document.components.schemas[name ?? '']).toHaveProperty('description')
  }
})

test('every path parameter of a template is declared', () => {
  for (const [path, methods] of Object.entries(document.paths)) {
    const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
    for (const { parameters } of Object.values(methods)) {
      expect(
        parameters
          .filter((it) => it.in === 'path')
          .map(({ name }) => name)
          .sort(),
      ).toEqual([...names].sort())
    }
  }
})
