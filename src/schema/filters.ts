import { type Static, Type } from '@sinclair/typebox'

const ms = { minimum: 0, maximum: 32767 }
const chance = { minimum: 0, maximum: 100 }

/** A filter is a list of numbers, as the protocol has it; those at the end may be left out. */
const parameters = (names: string, required: number, most: number, range: { minimum: number; maximum: number }) =>
  Type.Array(Type.Number(range), {
    minItems: required,
    maxItems: most,
    description: names,
    expects: `a list: [${names}]`,
  })

/** Impairments of a link, the same for both directions. A first parameter of 0 or "" means: off. */
export type Filters = Static<typeof Filters>
export const Filters = Type.Object(
  {
    frequency_drop: Type.Optional(
      Type.Array(Type.Integer({ minimum: -1, maximum: 32767 }), {
        minItems: 1,
        maxItems: 1,
        description: '[n]: drops every n-th frame, -1: all of them',
        expects: 'a list: [n]',
      }),
    ),
    packet_loss: Type.Optional(parameters('percent', 1, 1, chance)),
    delay: Type.Optional(parameters('latency in ms, jitter in ms', 1, 2, ms)),
    corrupt: Type.Optional(parameters('percent', 1, 1, chance)),
    bpf: Type.Optional(
      Type.Array(Type.String({ maxLength: 4096 }), {
        minItems: 1,
        maxItems: 2,
        description:
          '[expressions, one a line; link type]: drops frames that match one of the tcpdump expressions. The link type is DLT_EN10MB, on a serial port DLT_C_HDLC unless it is given',
        expects: 'a list: [expressions] or [expressions, link type]',
      }),
    ),
    rate: Type.Optional(
      parameters('kbit/s, burst in KB (16), longest wait in ms (100)', 1, 3, { minimum: 0, maximum: 100_000_000 }),
    ),
    duplicate: Type.Optional(parameters('percent', 1, 1, chance)),
    reorder: Type.Optional(parameters('percent, ms held back (10)', 1, 2, ms)),
  },
  {
    $id: 'Filters',
    additionalProperties: false,
    expects: 'an object of filters, such as {"delay": [50, 10], "packet_loss": [1]}',
    description:
      'Impairment of a link, in both directions. Frames meet the filters in the order in which the object has them',
  },
)
