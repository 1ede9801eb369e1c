import { expect, test } from 'vitest'
import { namesText, studentNames } from '../../../runtime/browser/classes/student-names.ts'

test.each([
  ['one a line', 'Ada Lovelace\nGrace Hopper\n'],
  ['with empty lines and blanks', '\n  Ada   Lovelace \r\n\r\n\tGrace Hopper'],
  ['between commas', 'Ada Lovelace, Grace Hopper,'],
  ['between semicolons', 'Ada Lovelace;Grace Hopper'],
  ['as a row of a spreadsheet', 'Ada Lovelace\tGrace Hopper'],
  ['in quotation marks, as some tables have them', '"Ada Lovelace","Grace Hopper"'],
])('names are taken %s', (_, text) => {
  expect(studentNames(text)).toEqual({ names: ['Ada Lovelace', 'Grace Hopper'], twice: [] })
})

test('letters with accents are the same, in whichever form a system writes them', () => {
  expect(studentNames('Zo\u00eb\nZoe\u0308')).toEqual({ names: ['Zo\u00eb'], twice: ['Zo\u00eb'] })
})

test('who is in the list more than once gets one lab, and is named', () => {
  const given = studentNames('Ada\nGrace\nada\nADA\nGrace Brewster')
  expect(given).toEqual({ names: ['Ada', 'Grace', 'Grace Brewster'], twice: ['Ada'] })
  expect(namesText(given)).toMatch(/^3 students\. Twice in the list: Ada\./)
  expect([namesText(studentNames('Ada')), namesText(studentNames('Ada, Grace'))]).toEqual(['1 student', '2 students'])
})
