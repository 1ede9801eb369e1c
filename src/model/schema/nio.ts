import { type Static, Type } from '@sinclair/typebox'
import { changing, closedSchema, nullable, objectSchema, oneOf, PortNumber, Uuid } from './fields.ts'
import { countedByFilters, droppedByFilters, Filters } from './filters.ts'

const onEvery = {
  suspend: Type.Optional(
    Type.Boolean({ default: false, description: 'true: the link is down; frames are dropped in both directions' }),
  ),
  filters: Type.Optional(Filters),
}

/** Name of a network device in Linux (IFNAMSIZ less the final NUL), without `%`, which numbers TAP devices. */
export const deviceName = (description: string) =>
  Type.String({
    pattern: '^(?!\\.{1,2}$)[!-$&-.0-9;-~]{1,15}$',
    expects: 'the name of a network device: 1 to 15 ASCII characters without blanks, slashes, % and :',
    description,
  })

const udp = {
  type: Type.Literal('nio_udp'),
  lport: Type.Integer({ ...PortNumber, description: 'Local UDP port; reserved while attached' }),
  rhost: Type.String({ minLength: 1, maxLength: 253, description: 'Address or name of the other end' }),
  rport: Type.Integer({ ...PortNumber, description: 'UDP port of the other end' }),
  ...onEvery,
}
const genericEthernet = {
  type: Type.Literal('nio_generic_ethernet'),
  ethernet_device: deviceName('Network device of the host; frames pass unchanged'),
  ...onEvery,
}
const ethernet = { ...genericEthernet, type: Type.Literal('nio_ethernet') }
const tap = {
  type: Type.Literal('nio_tap'),
  tap_device: deviceName('TAP device of the host; a missing device is created, and removed with the NIO'),
  ...onEvery,
}

export type UdpNio = Static<typeof UdpNio>
export const UdpNio = closedSchema('UdpNio', 'A UDP tunnel', udp)
type EthernetNio = Static<typeof GenericEthernetNio> | Static<typeof EthernetNio>
const GenericEthernetNio = closedSchema('GenericEthernetNio', 'A network device of the host', genericEthernet)
const EthernetNio = closedSchema('EthernetNio', 'A network device of the host', ethernet)
type TapNio = Static<typeof TapNio>
const TapNio = closedSchema('TapNio', 'A TAP device of the host', tap)

/** The NIO types of the protocol; each kind takes those of its descriptor. */
export const nioTypes = [
  ...['nio_udp', 'nio_generic_ethernet', 'nio_ethernet', 'nio_linux_ethernet', 'nio_nat', 'nio_tap', 'nio_unix'],
  ...['nio_vde', 'nio_vmnet', 'nio_null'],
] as const

/** A NIO that this version can attach. */
export type Nio = UdpNio | EthernetNio | TapNio
/** Changes to a NIO; absent members stay. */
export type NioChange = Partial<UdpNio> | Partial<EthernetNio> | Partial<TapNio>
export const nioSchemas = {
  nio_udp: UdpNio,
  nio_generic_ethernet: GenericEthernetNio,
  nio_ethernet: EthernetNio,
  nio_tap: TapNio,
} as const
/** The NIO types of ports with Ethernet frames. */
export const ethernetNios = Object.keys(nioSchemas) as readonly Nio['type'][]
export const Nio = Type.Union([UdpNio, GenericEthernetNio, EthernetNio, TapNio], {
  $id: 'Nio',
  description: 'The network side of a port',
})

/** The NIO of a port that a link of the project joins to another port of the compute (`agent.links`); it is only shown. */
export type LinkNio = Static<typeof LinkNio>
const link = {
  type: Type.Literal('nio_link'),
  link_id: Uuid,
  suspend: Type.Optional(Type.Boolean({ description: 'Only when the link is suspended' })),
}
export const LinkNio = closedSchema(
  'LinkNio',
  'A link that joins the port to another one of this compute; read-only',
  link,
)
/** What a port may be shown to be attached to. */
export type NioView = Nio | LinkNio

/** The state of a link. */
export type LinkVerdict = Static<typeof LinkVerdict>
export const LinkVerdict = oneOf(['ok', 'one_way', 'silent', 'peer_unreachable', 'suspended', 'port_taken'], {
  description:
    'ok: frames or probes pass both ways; one_way: only one way; silent: nothing passed; peer_unreachable: the other end refuses, or its device is down; suspended: the link drops all frames on request; port_taken: another program has the local port or device',
})

/** Who passes the frames of a link. */
export type FramePath = Static<typeof FramePath>
export const FramePath = oneOf(['kernel', 'relay'], {
  description:
    'kernel: a patch cable, the kernel of the host passes the frames; relay: the switch does, as an impairment or a capture needs it',
})

const count = (description: string) => Type.Integer({ minimum: 0, description })
const counters = {
  out_frames: count('Frames of the node that went to the link'),
  out_bytes: count('Their bytes'),
  in_frames: count('Frames of the link that went to the node'),
  in_bytes: count('Their bytes'),
  dropped: Type.Object(
    {
      suspended: count('The link is suspended'),
      ...droppedByFilters,
      queue_full: count('The queue was full'),
      not_linked: count('Nothing was attached'),
      no_guest: count('The node did not run'),
      send_failed: count('The operating system refused them'),
      filtered: Type.Optional(
        count('A switch did not forward them: another VLAN, back to where they came from, or a loop'),
      ),
    },
    { description: 'Frames that were dropped, by reason' },
  ),
  ...countedByFilters,
}

export const PortCounters = objectSchema('PortCounters', 'Counted since the port was opened', counters)

export const captureShown = Type.Object(
  {
    pcap_file_path: Type.String(),
    data_link_type: Type.String(),
    frames: count('Frames in the file'),
    missed: count('Frames that arrived faster than the disk could store them'),
  },
  { description: 'The running capture; null without a capture' },
)

const state = {
  link: changing(LinkVerdict),
  link_reason: Type.Optional(changing(nullable(Type.String({ description: 'Why no frames pass, if known' })))),
  path: Type.Optional(changing(FramePath)),
  counters: changing(PortCounters),
  capture: changing(nullable(captureShown)),
}

/** A NIO with the state of its link. */
export type NioState = NioView & { [K in keyof typeof state]: Static<(typeof state)[K]> }
export const NioState = Type.Union(
  [udp, genericEthernet, ethernet, tap, link].map((properties) => Type.Object({ ...properties, ...state })),
  { $id: 'NioState', description: 'A NIO with the state of its link' },
)
