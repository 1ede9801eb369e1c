import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '../..')
/** Texts about the interface, and not about one request. */
const documents = ['src/endpoints/openapi/openapi-outline.ts']

/** Requests with a placeholder in place of an id, within a text. The name of an endpoint is a text of its own. */
const placeholders = (source: string): string[] =>
  source.match(/[^\s'"`/*] (GET|POST|PUT|DELETE) \S*(?<!\$)\{\w+\}/g) ?? []

test('no message names a request with a placeholder that the client would have to replace', () => {
  expect(placeholders('`remove it by DELETE /v2/computes/{compute_id} first`')).toHaveLength(1)
  expect(placeholders("call('DELETE /v2/computes/{compute_id}')")).toEqual([])
  expect(placeholders('by DELETE /v2/computes/$' + '{id}')).toEqual([])
  const files = ['src', 'runtime'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
  )
  const found = files
    .filter((file) => /\.tsx?$/.test(file) && !documents.includes(file))
    .flatMap((file) => {
      const source = readFileSync(join(root, file), 'utf8').replaceAll(/^\s*(\/?\*|\/\/).*$/gm, '')
      return placeholders(source).map((text) => `${file}: ${text}`)
    })
  expect(found).toEqual([])
})
