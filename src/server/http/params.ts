import { Type } from '@sinclair/typebox'
import type { PortRef } from '../../host-agent.ts'
import { ErrorBody, Uuid } from '../../model/schema/fields.ts'
import type { ReplyShape } from './endpoint.ts'

const number = (what: string) =>
  Type.String({
    pattern: '^[0-9]{1,15}$',
    expects: 'a number written in digits',
    description: `Number of the ${what}, from 0`,
  })

export const projectParams = Type.Object({ project_id: Uuid })
export const pathTail = Type.String({
  minLength: 1,
  description: 'Path relative to the project; slashes are part of it',
})
export const portParams = { adapter_number: number('adapter'), port_number: number('port of the adapter') }

export const udpPortParam = {
  udp_port: Type.String({ pattern: '^[0-9]{1,5}$', expects: 'a port, in digits', description: 'The port' }),
}

/** The numbered port that a path names. */
export const portRefOf = (params: { adapter_number: string; port_number: string }): PortRef => ({
  adapter: Number(params.adapter_number),
  port: Number(params.port_number),
})

export const errorReply = (description: string): ReplyShape => ({ description, schema: ErrorBody })
export const sinceQuery = Type.Object({
  since: Type.Optional(
    Type.String({
      description: 'seq of the last event that the client received; the header Last-Event-ID has the same meaning',
    }),
  ),
  ticket: Type.Optional(Type.String({ description: 'Single-use ticket, for websockets of browsers' })),
})
/** How much an answer shows. A gateway asks its computes for everything. */
export const view = {
  view: Type.Optional(
    Type.Literal('full', {
      description:
        'full: all members, also those that clients of v2 do not expect; kinds without aliases; status 200 when nothing was created',
    }),
  ),
}
export const unknownProject = 'There is no such project, open or closed'
export const noSuchProject = 'There is no such open project'
export const noSuchNode = 'There is no such project or node'
