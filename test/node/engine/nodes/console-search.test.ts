import { describe, expect, it } from 'vitest'
import { ConsoleSearch, compiled } from '../../../../runtime/node/engine/nodes/console-search.ts'

const bytes = (text: string) => new TextEncoder().encode(text)

/** What an expression finds in output that comes in pieces. */
async function found(expression: string, ...pieces: string[]) {
  const search = new ConsoleSearch(await compiled('expect', expression))
  for (const piece of pieces) {
    search.push(bytes(piece))
    while (!search.isSearched) {
      const match = search.next()
      if (match !== undefined) return match
    }
  }
  return undefined
}

describe('the search in the output of a console', () => {
  it('finds a text that comes in pieces, also within a character', async () => {
    const search = new ConsoleSearch(await compiled('expect', 'né$'))
    const whole = bytes('né')
    search.push(whole.subarray(0, 2))
    expect(search.next()).toBeUndefined()
    search.push(whole.subarray(2))
    expect(search.next()?.matched).toBe('né')
    expect(await found('login: $', 'log', 'in', ': ')).toMatchObject({ matched: 'login: ', before: '' })
  })

  it('matches ^ and $ at the beginning and the end of a line, with any line end', async () => {
    expect(await found('^b$', 'a\r\nb\r\nc')).toMatchObject({ matched: 'b', before: 'a\n' })
    expect(await found('^b', `${'x'.repeat(4095)}b`)).toBeUndefined()
    expect(await found('^b', `${'x'.repeat(9000)}b`)).toBeUndefined()
  })

  it('finds matches of up to 4096 characters, wherever they begin in long output', async () => {
    for (const before of [0, 1000, 4095, 4096, 10_000]) {
      const text = `${'.'.repeat(before)}<${'x'.repeat(4000)}>${'.'.repeat(5000)}`
      expect((await found('<x+>', text))?.before.length).toBe(before)
    }
  })

  it('keeps the last 64 KiB of the output before a match', async () => {
    const match = await found('end', 'x'.repeat(50_000), 'y'.repeat(50_000), 'end')
    expect(match?.before.length).toBe(65_533)
    expect(match?.before.endsWith('y')).toBe(true)
  })

  it('takes time in proportion to the output, also for expressions with exponential backtracking', async () => {
    expect(await found('(x+x+)+y', 'x'.repeat(60_000))).toBeUndefined()
    expect(await found('(a|aa)+$', `${'a'.repeat(20_000)}!`)).toBeUndefined()
  })
})
