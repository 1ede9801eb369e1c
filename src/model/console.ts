import { type Static, Type } from '@sinclair/typebox'
import { closedSchema, nullable, objectSchema, PortNumber } from './schema/fields.ts'

/** Longest wait that one request may ask for, s. */
const longestWaitS = 300

/** When a node has answered a line that was typed on its console: it is quiet for `quietMs`, or `withinS` have passed. */
export const lineAnswer = { quietMs: 1500, withinS: 30 } as const

const Pattern = Type.String({ minLength: 1, maxLength: 1000, description: 'Regular expression in the syntax of RE2' })
const within = (value: number) =>
  Type.Optional(Type.Number({ minimum: 0, maximum: longestWaitS, default: value, description: 'Longest wait, s' }))

/** What is typed on a console, and the output that is waited for. */
export type ConsoleExpect = Static<typeof ConsoleExpect>
export const ConsoleExpect = closedSchema('ConsoleExpect', 'Text to type on a console, and output to wait for', {
  send: Type.Optional(Type.String({ maxLength: 16_384, description: 'Typed verbatim: end a line with \\n or \\r' })),
  expect: Type.Optional(Pattern),
  quiet_s: Type.Optional(
    Type.Number({
      minimum: 0.1,
      maximum: 60,
      description:
        'The wait ends, too, when nothing was shown for this time, s: `matched` is then empty, and `before` has the output. Needed without `expect`',
    }),
  ),
  echoes: Type.Optional(
    Type.Boolean({
      default: false,
      description:
        'The node echoes what is typed: only output after the first echo of `send` is searched, and further echoes are ignored',
    }),
  ),
  within_s: within(10),
})

/** Output that was waited for. */
export type ConsoleMatch = Static<typeof ConsoleMatch>
export const ConsoleMatch = objectSchema('ConsoleMatch', 'Output that was waited for', {
  matched: Type.String({ description: 'The text that matches' }),
  before: Type.String({ description: 'The output before it, at most 64 KiB' }),
  groups: Type.Array(nullable(Type.String()), {
    description: 'The groups of the expression; null: not part of the match',
  }),
})

/** When a node is ready, as a request asks for it. */
export type NodeReady = Static<typeof NodeReady>
export const NodeReady = closedSchema('NodeReady', 'What to wait for; all given conditions must hold', {
  console: Type.Optional(Pattern),
  tcp: Type.Optional(Type.Integer({ ...PortNumber, description: 'TCP port of the host that must accept connections' })),
  exec: Type.Optional(
    Type.String({
      ...{ minLength: 1, maxLength: 1024, pattern: '^[^\\u0000]*$', expects: 'a command of at most 1024 characters' },
      description: 'Command that must succeed in the container; it is tried each second',
    }),
  ),
  seconds: Type.Optional(Type.Number({ minimum: 0, maximum: longestWaitS, description: 'Time from now' })),
  within_s: within(60),
})
