import { Type } from '@sinclair/typebox'

/** Members of other programs that this one does not know. */
export const kept = Type.Record(Type.String({ maxLength: 100 }), Type.Unknown(), {
  $id: 'Kept',
  description:
    'Members that clients of other programs gave and that are unknown here; of nodes unknown properties, too. They are kept',
})
