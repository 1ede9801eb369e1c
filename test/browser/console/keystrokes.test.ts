import { expect, test } from 'vitest'
import { keystrokesOf } from '../../../runtime/browser/console/keystrokes.ts'

const shown = (text: string) =>
  keystrokesOf(text).map(({ keysym, code, isShifted }) => `${isShifted ? 'Shift+' : ''}${code} ${keysym.toString(16)}`)

test('a text is typed by the keys of a US keyboard, with Shift where the character needs it', () => {
  expect(shown('aA1! ')).toEqual(['KeyA 61', 'Shift+KeyA 41', 'Digit1 31', 'Shift+Digit1 21', 'Space 20'])
  expect(shown(')_"~|')).toEqual([
    ...['Shift+Digit0 29', 'Shift+Minus 5f', 'Shift+Quote 22', 'Shift+Backquote 7e', 'Shift+Backslash 7c'],
  ])
})

test('every printable character of ASCII has a key', () => {
  const all = String.fromCharCode(...Array.from({ length: 95 }, (_, index) => index + 32))
  expect(keystrokesOf(all).filter(({ code }) => code === 'Unidentified')).toEqual([])
})

test('any line end is Enter, and control characters are their keys', () => {
  expect(shown('\n\r\r\n')).toEqual(['Enter ff0d', 'Enter ff0d', 'Enter ff0d'])
  expect(shown('\t\x1b\x7f')).toEqual(['Tab ff09', 'Escape ff1b', 'Backspace ff08'])
})

test('other characters are sent by their symbol alone', () => {
  expect(shown('é€🦊')).toEqual(['Unidentified e9', 'Unidentified 10020ac', 'Unidentified 101f98a'])
})
