import { expect, onTestFinished, test, vi } from 'vitest'
import { isAtThisComputer, linksCsv, linksText } from '../../../runtime/browser/classes/links-text.ts'
import type { ClassLink } from '../../../src/client/patchbay.ts'

const linkOf = (student: string) => ({ student, project: `net-${student}`, path: '/#/class/pb_1_2' })

test('the table of links has a row a student, with the whole address', () => {
  expect(linksCsv([linkOf('Ada'), linkOf('Bärbel')], 'https://lab.example')).toBe(
    '\ufeff"Student","Lab","Link"\r\n' +
      '"Ada","net-Ada","https://lab.example/#/class/pb_1_2"\r\n' +
      '"Bärbel","net-Bärbel","https://lab.example/#/class/pb_1_2"\r\n',
  )
})

test('names with commas and quotation marks stay in their cells, and none is a formula', () => {
  const [, first, second] = linksCsv([linkOf('Ada "A"; Lovelace'), linkOf('=1+2')], 'https://a').split('\r\n')
  expect(first).toBe('"Ada ""A""; Lovelace","net-Ada ""A""; Lovelace","https://a/#/class/pb_1_2"')
  expect(second).toBe(`"'=1+2","net-=1+2","https://a/#/class/pb_1_2"`)
})

test.each(['=1+2', '+1', '-1', '@A1', ' =1+2', '＝1', '＋1', '－1', '＠A1'])(
  '%s is no formula where all links are pasted, either',
  (name) => {
    vi.stubGlobal('location', { origin: 'https://a' })
    onTestFinished(() => void vi.unstubAllGlobals())
    const links = [linkOf(name), linkOf('Ada')].map((it) => ({ ...it, project_id: '1' }) as unknown as ClassLink)
    expect(linksText(links)).toBe(`'${name}\thttps://a/#/class/pb_1_2\nAda\thttps://a/#/class/pb_1_2`)
    expect(linksCsv(links, 'https://a')).toContain(`\n"'${name}",`)
  },
)

test('links begin with the address that is given for this computer', () => {
  expect(linksText([linkOf('Ada')], 'http://10.0.0.1:3080')).toBe('Ada\thttp://10.0.0.1:3080/#/class/pb_1_2')
})

test.each([
  ['127.0.0.1', true],
  ['127.1.2.3', true],
  ['localhost', true],
  ['[::1]', true],
  ['192.168.1.20', false],
  ['localhost.example', false],
])('whether %s leads every computer to itself: %s', (host, isIt) => {
  expect(isAtThisComputer(host)).toBe(isIt)
})
