import { afterAll, beforeAll, expect, test, vi } from 'vitest'

const location = { hash: '#/class/pb_1_secret' }
const listeners: (() => void)[] = []
const addresses: string[] = []
let route: typeof import('../../../runtime/browser/state/route.ts')
beforeAll(async () => {
  vi.stubGlobal('location', location)
  vi.stubGlobal('addEventListener', (_: string, listener: () => void) => listeners.push(listener))
  vi.stubGlobal('history', {
    replaceState(_: unknown, __: string, path: string) {
      addresses.push(path)
      location.hash = path
    },
  })
  vi.resetModules()
  route = await import('../../../runtime/browser/state/route.ts')
  vi.unstubAllGlobals()
  vi.stubGlobal('location', location)
  vi.stubGlobal('history', { replaceState: (_: unknown, __: string, path: string) => addresses.push(path) })
})

afterAll(() => void vi.unstubAllGlobals())

function go(hash: string): void {
  location.hash = hash
  for (const listener of listeners) listener()
}

test('the token of a link is out of the address as soon as the page begins', () => {
  expect([route.linkToken.value, addresses]).toEqual(['pb_1_secret', ['#/']])
  route.leaveLink('#/labs/net-ada')
  expect([route.linkToken.value, addresses.at(-1)]).toEqual([undefined, '#/labs/net-ada'])
  expect(route.route.value).toEqual({ screen: 'lab', lab: 'net-ada' })
})

test('a link that is opened in a page which is there already is taken, too, and the page stays until it is followed', () => {
  go('#/class/pb_2_other')
  expect([route.linkToken.value, addresses.at(-1)]).toEqual(['pb_2_other', '#/labs/net-ada'])
  expect(route.isLinkFollowed.value).toBe(false)
  route.forgetLink()
  expect(route.linkToken.value).toBeUndefined()
  go('#/class/pb_2_other')
  go('#/labs')
  expect(route.linkToken.value).toBeUndefined()
})

test('classes and each class have addresses', () => {
  go('#/classes')
  expect(route.route.value).toEqual({ screen: 'classes' })
  go(route.classPath('net 1/2'))
  expect(route.route.value).toEqual({ screen: 'classes', className: 'net 1/2' })
})

test('from a lab the way back is to the wall of the class from which it was opened, or else to all labs', () => {
  go('#/classes/net')
  go('#/labs/net-ada')
  expect(route.labsPath.value).toBe('#/classes/net')
  go('#/labs/net-ada/nodes/PC1')
  go('#/labs/net-ada')
  expect(route.labsPath.value).toBe('#/classes/net')
  go('#/')
  go('#/labs/net-ada')
  expect(route.labsPath.value).toBe('#/')
})
