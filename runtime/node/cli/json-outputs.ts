import { type Static, Type } from '@sinclair/typebox'
import { LabPlan, LabPlanStep } from '../../../src/model/lab/topology.ts'
import { oneOf } from '../../../src/model/schema/fields.ts'

// What commands print with `--json`, for CI and other programs. Members are added, but none is removed or changed within version 1.

const seconds = Type.Number({ description: 'How long it took, s' })
/** One error of an outcome. */
export type CommandDiagnostic = Readonly<Static<typeof CommandDiagnostic>>
const CommandDiagnostic = Type.Object({
  message: Type.String(),
  file: Type.Optional(Type.String()),
  line: Type.Optional(Type.Integer()),
  column: Type.Optional(Type.Integer()),
  path: Type.Optional(Type.String({ description: 'The keys to the value in the lab file' })),
  hint: Type.Optional(Type.String({ description: 'What would be right' })),
})
const outcome = {
  ok: Type.Boolean({ description: 'Whether the exit code is 0' }),
  exit: Type.Integer({ description: 'The exit code' }),
}

const CheckResult = Type.Object({
  name: Type.String({
    description: 'Of the check; the first one is "starts", the start of the lab, unless with --running',
  }),
  ok: Type.Boolean(),
  state: oneOf(['ok', 'failed', 'not run']),
  seconds,
  saw: Type.Optional(Type.String({ description: 'What there was instead, of a failed check' })),
  line: Type.Optional(Type.Integer({ description: 'Its line in the lab file' })),
})

/** The test of one lab file. */
export type LabResult = Static<typeof LabResult>
const LabResult = Type.Object({
  file: Type.String({ description: 'The lab file, as it was given' }),
  lab: Type.String({ description: 'The name in the file' }),
  name: Type.String({ description: 'The name of the lab that was made or checked' }),
  ok: Type.Boolean(),
  seconds,
  checks: Type.Array(CheckResult),
  tasks: Type.Optional(
    Type.Array(
      Type.Object({
        name: Type.String(),
        points: Type.Number(),
        done: Type.Boolean(),
        holding: Type.Integer({ description: 'How many of its checks passed' }),
        checks: Type.Integer(),
      }),
    ),
  ),
  score: Type.Optional(Type.Object({ points: Type.Number(), of: Type.Number() })),
  errors: Type.Array(CommandDiagnostic),
  artifacts: Type.Optional(Type.String({ description: 'The directory of what the failed test has left behind' })),
})

/** A check of a lab file that is not run. */
export type ListedCheck = Static<typeof ListedCheck>
const ListedCheck = Type.Object({
  file: Type.String(),
  lab: Type.String(),
  name: Type.String(),
  line: Type.Optional(Type.Integer()),
  within_s: Type.Number(),
})

/** What `patchbay test --json` prints. */
const TestOutput = Type.Object(
  {
    ...outcome,
    seconds: Type.Optional(seconds),
    labs: Type.Optional(Type.Array(LabResult)),
    checks: Type.Optional(Type.Array(ListedCheck, { description: 'With --list' })),
    errors: Type.Optional(Type.Array(CommandDiagnostic)),
  },
  { description: 'The output of "patchbay test --json"; without labs when nothing was tested' },
)

const { lab, project_id, revision, interrupted, withheld, extra, stop_at } = LabPlan.properties
/** A node after `patchbay up`. */
export type UpNode = Static<typeof UpNode>
const UpNode = Type.Object({
  name: Type.String(),
  node_id: Type.String(),
  kind: Type.String(),
  status: Type.String(),
  state: Type.String({ description: 'The status as people read it' }),
  ready: Type.Boolean(),
  console: Type.Union([Type.Integer(), Type.Null()], { description: 'TCP port' }),
})
const UpLink = Type.Object({
  link_id: Type.String(),
  name: Type.Optional(Type.String()),
  ends: Type.Array(Type.String({ description: 'NODE:PORT' })),
  verdict: Type.Optional(Type.Union([Type.String(), Type.Null()])),
  state: Type.String(),
  suspend: Type.Boolean(),
})

/** What `patchbay up --json` prints. */
const UpOutput = Type.Object(
  {
    ...outcome,
    ...Type.Partial(
      Type.Object({
        lab,
        project_id,
        revision,
        steps: Type.Array(Type.Composite([LabPlanStep, Type.Object({ done: Type.Boolean() })])),
        interrupted,
        withheld,
        extra,
        cannot_run: Type.Array(
          Type.Object({ name: Type.String(), reason: Type.String(), images: Type.Optional(Type.Array(Type.String())) }),
        ),
        stop_at,
        nodes: Type.Array(UpNode),
        links: Type.Array(UpLink),
        errors: Type.Array(CommandDiagnostic),
      }),
    ).properties,
  },
  { description: 'The output of "patchbay up --json"; without a lab when the file is wrong' },
)

/** The outputs whose schemas `patchbay schema --of` prints. */
export const jsonOutputs = { up: UpOutput, test: TestOutput } as const
