import { expect, test } from 'vitest'
import { selectedLabs } from '../../../runtime/browser/labs/selected-labs.ts'

const labs = ['1', '2', '3'].map((project_id) => ({ project_id, name: `lab ${project_id}` }))

test('what the search hides is not selected, nor is a lab that was deleted', () => {
  expect(selectedLabs(labs, new Set(['1', '2', '4']), ['3', '2', '4'])).toEqual([labs[1]])
})
