import { expect, test } from 'vitest'
import { ProjectAccess } from '../../../../src/server/access/project-access.ts'

test('a refusal names the client, which may be a token or a user', () => {
  const access = new ProjectAccess({ name: 'me@example.org', projects: ['one', 'class-*'] }, undefined)
  expect(() => access.requireNew({ name: 'two' })).toThrow(
    'name: "me@example.org" is limited to the projects one, class-*',
  )
  expect(() => access.requireNew({ name: 'one', path: '/tmp' })).toThrow(
    'path: "me@example.org" is limited to certain projects and cannot choose a directory',
  )
})
