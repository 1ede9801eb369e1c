import { pino } from 'pino'
import { expect, test } from 'vitest'
import { logForPeople } from '../../../../runtime/node/os/log/pretty.ts'

function logged(hasColours: boolean, log: (it: ReturnType<typeof pino>) => void): string {
  let text = ''
  log(pino({ level: 'debug' }, logForPeople({ hasColours, write: (it) => (text += it) })))
  return text
}

test('a log for people has time, level, message and details in a line', () => {
  const text = logged(false, (it) => it.warn({ node: 'R1', ms: 1.23456, of: { a: 1 } }, 'is slow'))
  expect(text).toMatch(/^\d\d:\d\d:\d\d warn {2}is slow node=R1 ms=1.23 of=\{ a: 1 \}\n$/)
  expect(logged(true, (it) => it.error({}, 'failed'))).toContain('\u001b[31merror\u001b[0m failed')
})

test('an error shows its trace below the message', () => {
  expect(logged(false, (it) => it.error({ err: new Error('no disk') }, 'a request failed'))).toMatch(
    / error a request failed\n {6}Error: no disk\n {6}at /,
  )
})

test('data of guests and clients cannot control the terminal', () => {
  const text = logged(false, (it) => it.info({ path: '/\u001b[2J' }, 'a\u001b[31mb\u0007'))
  expect([...text.trimEnd()].every((letter) => letter >= ' ')).toBe(true)
})
