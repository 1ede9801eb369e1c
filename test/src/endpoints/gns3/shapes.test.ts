import { expect, test } from 'vitest'
import { line } from '../../../../src/endpoints/gns3/shapes.ts'

test('the event of a restore has the snapshot in the words of GNS3', () => {
  const event = { snapshot_id: 's', project_id: 'p', name: 'before', created_at: 1, size: 7, running: 0 }
  expect(line({ action: 'snapshot.restored', event }, 'project', '2.2.59')).toEqual({
    action: 'snapshot.restored',
    event: {
      ...{ snapshot_id: 's', project_id: 'p', name: 'before', created_at: 1 },
      ...{ description: '', filename: 'before.gns3project' },
    },
  })
})
