import { Type } from '@sinclair/typebox'

/** Members of input that only other programs know. */
export const kept = Type.Record(Type.String({ maxLength: 100 }), Type.Unknown(), {
  $id: 'Kept',
  description:
    'Members that clients of other programs sent and this service does not know, for nodes also such properties; stored unchanged',
})
