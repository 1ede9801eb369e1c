import { expect, test } from 'vitest'
import { bytesOfText, textOfBytes } from '../../../../src/lib/http/header-text.ts'
import { credentialsIn } from '../../../../src/server/access/credentials.ts'

/** The bytes of a text, each as a character, as a runtime gives a header. */
const utf8 = (text: string) => String.fromCharCode(...new TextEncoder().encode(text))

test('credentials have the same text from UTF-8 and from Latin-1', () => {
  // à is C3 A0 in UTF-8: A0 alone is a blank to a regular expression.
  const secret = 'sécret-token-äöüà'
  for (const encode of [String, utf8]) {
    expect(credentialsIn(`Bearer ${encode(secret)}`)).toEqual({ kind: 'bearer', token: secret })
    expect(credentialsIn(`Basic ${btoa(encode(`zoë:${secret}`))}`)).toMatchObject({ kind: 'basic', password: secret })
  }
  expect(credentialsIn(`Basic ${btoa(utf8('zoë:ł'))}`)).toMatchObject({ user: 'zoë', password: 'ł' })
  expect(credentialsIn('Bearer plain')).toEqual({ kind: 'bearer', token: 'plain' })
})

test('a text that is decoded already stays, and is sent so that a service reads it', () => {
  for (const text of ['é', 'Ã', 'plain', 'żółw', '€']) {
    expect(textOfBytes(text)).toBe(text)
    expect(textOfBytes(bytesOfText(text))).toBe(text)
    expect(bytesOfText(text)).not.toMatch(/[\u0100-\uffff]/)
  }
})
