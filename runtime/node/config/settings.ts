import { type Static, type TObject, type TProperties, Type } from '@sinclair/typebox'
import { defaultDrainS } from '../../../src/controller/drain.ts'
import { defaultLabLimits } from '../../../src/controller/lab-limits.ts'
import { Role } from '../../../src/model/access-token.ts'
import { maxToldAddresses } from '../../../src/model/link-check.ts'
import { OrganizationId } from '../../../src/model/organization.ts'
import { NetworkText } from '../host/networks.ts'
import type { HostKind } from '../kinds/host-kind.ts'
import { hostKinds } from '../kinds/index.ts'

const portRange = (first: number, last: number, description: string) =>
  Type.Tuple([Type.Integer({ minimum: 1024, maximum: 65535 }), Type.Integer({ minimum: 1024, maximum: 65535 })], {
    default: [first, last],
    description,
    expects: `a range of ports from 1024 to 65535, such as ${first}-${last}`,
  })
const text = (description: string, options: object = {}) => Type.String({ default: '', description, ...options })
const off = (description: string, options: object = {}) => Type.Boolean({ default: false, description, ...options })
const whole = (minimum: number, value: number, description: string, options: object = {}) =>
  Type.Integer({ minimum, default: value, description, ...options })
const words = (description: string, options: object = {}) =>
  Type.Array(Type.String({ minLength: 1 }), { default: [], description, ...options })
const oneOf = <const T extends string>(values: readonly [T, T, ...T[]], options: object) =>
  Type.Unsafe<T>({ ...Type.Union(values.map((value) => Type.Literal(value))), ...options })
const group = <P extends TProperties>(properties: P) =>
  Type.Object(properties, { default: {}, additionalProperties: false })

type Underscored<S extends string> = S extends `${infer A}-${infer B}` ? `${A}_${Underscored<B>}` : S
type KindGroups = {
  [K in (typeof hostKinds)[number] as Underscored<K['descriptor']['name']>]: TObject<NonNullable<K['settings']>>
}
const groupName = ({ descriptor }: HostKind): string => descriptor.name.replaceAll('-', '_')
const kindGroups = Object.fromEntries(
  hostKinds.flatMap((kind: HostKind) => (kind.settings === undefined ? [] : [[groupName(kind), group(kind.settings)]])),
) as unknown as KindGroups

/** The group of settings of a kind. */
export const groupOf = (settings: Settings, kind: HostKind): Readonly<Record<string, unknown>> =>
  (settings as unknown as Readonly<Record<string, Readonly<Record<string, unknown>>>>)[groupName(kind)] ?? {}

/**
 * The only declaration of the settings. The configuration file, the environment (`PATCHBAY_` and the key in capitals, `.` as `_`) and
 * the flags (`--` and the key with `-`, or `flag`) are read by this schema. `reload: true`: a reload puts a new value in force without
 * a restart. `secret: true`: the value is never shown. `fileOf`: the value is the path of a file with the secret of that name.
 */
export type Settings = Static<typeof Settings>
export const Settings = Type.Object(
  {
    host: text('Address to listen on', { minLength: 1, default: '127.0.0.1' }),
    port: whole(0, 3080, 'TCP port; 0 takes a free one', { maximum: 65535 }),
    data: text('Directory of the whole state', { minLength: 1, default: '~/.local/share/patchbay' }),
    log_level: oneOf(['silent', 'error', 'warn', 'info', 'debug'], {
      default: 'info',
      description: 'Lowest severity of the messages in the log',
      reload: true,
    }),
    local: Type.Optional(
      Type.Boolean({
        description:
          'Local mode: project paths and images anywhere the user may read; never for requests of a gateway. Default: on when host is loopback and join.url is not set',
      }),
    ),
    gateway: off('Be a gateway: run no nodes, and place labs on the computes that are registered or join'),
    insecure: off('Listen beyond loopback without credentials, and take HTTP Basic there without TLS'),
    user: text('User of HTTP Basic'),
    password: text('Password of HTTP Basic', { secret: true }),
    password_file: text('File with the password, in one line', { fileOf: 'password' }),
    token: text('Bearer token', { secret: true }),
    token_file: text('File with the token, in one line', { fileOf: 'token' }),
    allowed_hosts: words('Host names by which clients may call the service, beside its own addresses', {
      reload: true,
    }),
    allowed_origins: words('Origins of web pages that may use the service', { reload: true }),
    trusted_proxies: words(
      'Addresses or networks (10.0.0.0/8) of proxies whose X-Forwarded-For, X-Forwarded-Proto and Forwarded are trusted',
      { reload: true },
    ),
    console_host: Type.Optional(Type.String({ description: 'Address of telnet consoles. Default: loopback' })),
    console_replay: Type.Boolean({
      default: true,
      reload: true,
      description:
        'Whether a new telnet client first gets the scroll-back of the console; for nodes started from then on',
    }),
    console_port_range: portRange(5000, 10000, 'TCP ports of consoles, inclusive'),
    vnc_port_range: portRange(11000, 12000, 'TCP ports of VNC consoles, inclusive'),
    udp_port_range: portRange(20000, 30000, 'UDP ports of links, inclusive'),
    allowed_interfaces: Type.Array(Type.String({ minLength: 1, maxLength: 64 }), {
      default: [],
      description:
        'Network devices of the host that NIOs may use, * for any text; without any: all in local mode, else none',
      reload: true,
    }),
    udp_peers: Type.Array(NetworkText, {
      default: [],
      description:
        'Networks of other hosts that nio_udp and UDP ports of clouds may lead to outside local mode; links between computes need none',
      reload: true,
    }),
    sandbox: oneOf(['auto', 'bubblewrap', 'namespaces', 'off'], {
      default: 'auto',
      description:
        'How emulators are confined outside local mode; auto takes bubblewrap where it is installed, else namespaces',
    }),
    require_sandbox: off('Outside local mode run no emulator without confinement', { reload: true }),
    emulator_user: text(
      'User (or UID:GID) of confined emulators when the service runs as root; otherwise they run as the user of the service',
      { minLength: 1, default: 'nobody', reload: true },
    ),
    executables: Type.Array(
      Type.String({ pattern: '^[0-9a-fA-F]{64}$', expects: 'a SHA-256 digest, 64 hexadecimal digits' }),
      {
        default: [],
        description:
          'SHA-256 digests of IOU images that may run outside local mode, beside the uploads of administrators',
        reload: true,
      },
    ),
    on_exit: oneOf(['stop', 'keep'], {
      default: 'stop',
      description: 'Whether running nodes stop when the service ends, or keep running',
      reload: true,
    }),
    min_free_space_mb: whole(0, 200, 'With less free disk space than this (MB) nothing new is written', {
      reload: true,
    }),
    additional_images_path: words('Directories searched for images, after the one in the data directory'),
    aliases: Type.Record(Type.String({ pattern: '^[a-z0-9-]+$' }), Type.String({ pattern: '^[a-z0-9-]+$' }), {
      default: {},
      description: 'Aliases of words in paths, such as vpcs = "pc"',
    }),
    clients: oneOf(['patchbay', 'gns3'], {
      default: 'patchbay',
      description: 'Whose words, members and statuses the service speaks; gns3: those of release 2.2',
    }),
    clients_version: text('Version that clients = "gns3" says to clients that do not say their own', {
      default: '2.2.59',
    }),
    clients_streams_to: words(
      'Addresses or networks of controllers that get consoles and captures without credentials, as release 2.2 sends none for them',
      { reload: true },
    ),
    clients_web_ui: text('Directory with the files of the web client of clients = "gns3", served at /static/web-ui/'),
    tls: group({
      cert: text('PEM file of the certificate, with its chain: the service speaks https. Read again when it changes', {
        reload: true,
      }),
      key: text('PEM file of its private key', { reload: true }),
    }),
    join: group({
      url: text(
        'Gateway to join, wss://...: the compute keeps a connection to it, by which the gateway reaches the compute',
        {
          flag: 'join',
        },
      ),
      token: text('Join token of that gateway. Default: token', { secret: true }),
      token_file: text('File with the join token, in one line', { fileOf: 'join.token' }),
      addresses: words(
        'IP addresses at which other computes reach this one, for links between two computes, beside those of its interfaces',
        { reload: true, maxItems: maxToldAddresses },
      ),
    }),
    fleet: group({
      join_tokens: Type.Array(
        Type.String({
          pattern: '^([A-Za-z0-9_][A-Za-z0-9._~-]{0,99}:)?[A-Za-z0-9._~+/=-]{16,512}$',
          expects: 'a text of at least 16 letters, digits, ".", "_", "~", "+", "/", "=" and "-"',
        }),
        {
          default: [],
          description:
            'Tokens with which computes join, one for each: TOKEN for the first compute that uses it, or COMPUTE_ID:TOKEN',
          secret: true,
          reload: true,
        },
      ),
      keep_archives: Type.Boolean({
        default: false,
        description:
          'Whether a gateway keeps an archive of each project that is closed, from which a drain of its compute makes it elsewhere when the compute is gone',
      }),
      drain_s: whole(1, defaultDrainS, 'Longest drain of a compute, s; then its job says which projects are left', {
        maximum: 604_800,
        reload: true,
      }),
    }),
    limits: group({
      json_kb: whole(1, 1024, 'Largest JSON body, KB'),
      image_gb: whole(1, 100, 'Largest upload of an image, GB', { maximum: 1_000_000, reload: true }),
      feeds: whole(1, 64, 'Open notification feeds of a project', { reload: true }),
      history: whole(1, 1024, 'Events of a project that are kept for reconnecting feeds'),
      lab_mb: whole(
        1,
        defaultLabLimits.lab_mb,
        'Largest project, MiB: its settings, nodes, links, drawings and records of snapshots, as JSON. A larger one can only shrink',
        { maximum: 1024, reload: true },
      ),
      lab_objects: whole(
        1,
        defaultLabLimits.lab_objects,
        'Most nodes, links, drawings and snapshots of a project together',
        { maximum: 1_000_000, reload: true },
      ),
      open_labs_mb: whole(
        1,
        defaultLabLimits.open_labs_mb,
        'Most memory of all open projects, MiB, with the edits that they can undo; never more than a sixth of the heap. A larger project stays closed',
        { maximum: 65_536, reload: true },
      ),
      templates: whole(0, defaultLabLimits.templates, 'Most templates that users have made', {
        ...{ maximum: 100_000, reload: true },
      }),
      templates_mb: whole(0, defaultLabLimits.templates_mb, 'Most templates, and most symbols, of users, MiB as JSON', {
        ...{ maximum: 1024, reload: true },
      }),
      projects: whole(1, defaultLabLimits.projects, 'Most projects', { maximum: 1_000_000, reload: true }),
      token_projects: whole(1, defaultLabLimits.token_projects, 'Most projects of a token for some projects', {
        ...{ maximum: 1_000_000, reload: true },
      }),
      wrong_logins: whole(
        0,
        10,
        'Wrong log-ins per minute from one address with one name, and ten times as many from the address; 0: no limit',
        { maximum: 1_000_000, reload: true },
      ),
      header_timeout_ms: whole(100, 10_000, 'Timeout for the headers of a request, ms'),
      body_timeout_ms: whole(100, 60_000, 'Timeout for more data of a request body, ms'),
    }),
    rate_limit: group({
      per_s: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: 1_000_000,
          description:
            'Requests per second with one token or other credentials; 0: no limit. Default: 100 on a gateway, else 0',
          reload: true,
        }),
      ),
      burst: whole(0, 0, 'Largest burst of requests after a pause; 0: three times the requests per second', {
        maximum: 1_000_000,
        reload: true,
      }),
    }),
    cloudflare_access: group({
      team_domain: text('Accepts the users of Cloudflare Access: the team domain, such as team.cloudflareaccess.com', {
        pattern: '^([a-z0-9-]+(\\.[a-z0-9-]+)+)?$',
        expects: 'a domain such as team.cloudflareaccess.com',
      }),
      audience: text('The Application Audience (AUD) tag of Cloudflare Access'),
      role: Type.Union(Role.anyOf, { default: 'operate', description: 'Role of the users of Cloudflare Access' }),
      admins: Type.Array(Type.String({ minLength: 3 }), {
        default: [],
        description: 'E-mail addresses of users of Cloudflare Access with the role admin',
      }),
      organizations: Type.Record(Type.String({ pattern: '^[a-z0-9-]+(\\.[a-z0-9-]+)+$' }), OrganizationId, {
        default: {},
        description:
          'Organizations of users of Cloudflare Access, by the domain of their e-mail address, such as "school.example" = "school"; others belong to default',
      }),
    }),
    ...kindGroups,
  },
  { additionalProperties: false },
)
