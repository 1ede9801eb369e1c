import { type Static, Type } from '@sinclair/typebox'
import { closedSchema, maybe, nullable, objectSchema, oneOf, PortNumber } from './schema/fields.ts'

/** Most candidates of one compute, and most addresses that it reports. */
export const maxCandidates = 12
export const maxToldAddresses = 8
/** Ports below it are not probed: they belong to services of the host. */
export const firstProbedPort = 1024

const shown = { maxLength: 253, pattern: '^[^\\u0000-\\u001f\\u007f]*$' }
export const IpAddress = Type.String({
  ...shown,
  pattern: '^([0-9]{1,3}(\\.[0-9]{1,3}){3}|[0-9a-fA-F:.]*:[0-9a-fA-F:.]*)$',
  expects: 'an IPv4 or IPv6 address',
  description: 'An IPv4 or IPv6 address',
})
const BootId = Type.String({ ...shown, description: 'The boot id of the host: equal on computes of one host' })

export type LinkCandidates = Static<typeof LinkCandidates>
export const LinkCandidates = objectSchema('LinkCandidates', 'Where other computes may reach a UDP port of this one', {
  addresses: Type.Array(IpAddress, {
    maxItems: maxToldAddresses,
    description: 'Addresses of the interfaces and of the setting join.addresses',
  }),
  boot_id: nullable(BootId),
})

/** A UDP port of an address. */
export type UdpAddress = Static<typeof UdpAddress>
const UdpAddress = Type.Object({ address: IpAddress, port: PortNumber })

export type LinkCheck = Static<typeof LinkCheck>
export const LinkCheck = closedSchema('LinkCheck', 'An attempt of two computes to reach each other by UDP', {
  end: oneOf(['a', 'b'], { description: 'The end of the link that this compute is' }),
  key: Type.String({
    pattern: '^[0-9a-f]{64}$',
    expects: '64 hexadecimal digits',
    description: 'Signs the probes of this attempt; both ends get the same key, which no other attempt uses',
  }),
  candidates: Type.Array(
    Type.Object(
      {
        host: Type.String({ ...shown, minLength: 1, description: 'Address or name of the other end' }),
        port: Type.Integer({ minimum: firstProbedPort, maximum: 65535, description: 'Its UDP port' }),
      },
      { additionalProperties: false },
    ),
    { minItems: 1, maxItems: maxCandidates, description: 'Addresses at which the other end may be, best first' },
  ),
  boot_id: maybe(BootId),
})

const checkOutcomes = ['answered', 'heard', 'silent', 'failed'] as const
export type LinkCheckResult = Static<typeof LinkCheckResult>
export const LinkCheckResult = objectSchema('LinkCheckResult', 'The result of an attempt', {
  paths: Type.Array(Type.Object({ ...UdpAddress.properties, seen_as: UdpAddress }), {
    maxItems: 2 * maxCandidates,
    description:
      'Addresses from which the other end has answered, best first, and the addresses at which it has seen this end',
  }),
  tried: Type.Array(
    Type.Object({
      host: Type.String(shown),
      port: PortNumber,
      outcome: oneOf(checkOutcomes, {
        description:
          'heard: probes arrived from the other end, but no answer; failed: nothing could be sent, see reason',
      }),
      reason: nullable(Type.String({ maxLength: 500 })),
    }),
    { maxItems: 2 * maxCandidates },
  ),
})
