import { expect, test } from 'vitest'
import { htmlOf, safeAddress } from '../../../runtime/browser/tasks/markdown-html.ts'

const lines = (text: string) => htmlOf(text).replaceAll(/\s*\n\s*/g, '')

test('emphasis, code, lists and blocks of code are marked', () => {
  expect(lines('Share **it**, *all* of `a*b*c`.')).toBe(
    '<p>Share <strong>it</strong>, <em>all</em> of <code>a*b*c</code>.</p>',
  )
  expect(lines('- a\n- b')).toBe('<ul><li>a</li><li>b</li></ul>')
  expect(lines('```sh\nip *x* <b>\n```')).toContain('<pre>ip *x* &lt;b&gt;</pre>')
})

test('HTML is text, lines of a paragraph stay together, and a name with underscores is not emphasized', () => {
  expect(lines('<script>alert(1)</script>')).toBe('<p>&lt;script>alert(1)&lt;/script></p>')
  expect(lines('`</pre><img src=x>`')).toBe('<p><code>&lt;/pre&gt;&lt;img src=x&gt;</code></p>')
  expect(lines('one\ntwo\r\nthree')).toBe('<p>one two three</p>')
  expect(lines('ge_0_0 and _this_')).toBe('<p>ge_0_0 and <em>this</em></p>')
})

test('only addresses of the web and of mail can be followed', () => {
  const all = [
    'https://a.b/c',
    'mailto:a@b.c',
    'javascript:alert(1)',
    'data:text/html,x',
    '/relative',
    'java\nscript:x',
  ]
  expect(all.map(safeAddress)).toEqual(['https://a.b/c', 'mailto:a@b.c', undefined, undefined, undefined, undefined])
})

test('a long text is marked in time, whatever it is', () => {
  for (const piece of ['[', '*a ', '`', '> ', '- a\n', '_', '|a', '<', '**', '1. ', '![[', '[a]('])
    expect(htmlOf(piece.repeat(10_000 / piece.length)).length).toBeGreaterThan(0)
}, 10_000)
