import { type Static, type TObject, type TProperties, Type } from '@sinclair/typebox'
import { defaultLabLimits } from '../../../../src/labs/lab/lab-limits.ts'
import { defaultDrainS } from '../../../../src/labs/moves/drain.ts'
import { Role } from '../../../../src/model/access/access-token.ts'
import { maxToldAddresses } from '../../../../src/model/link-check.ts'
import { OrganizationId } from '../../../../src/model/organization.ts'
import { nodeDrivers } from '../../drivers/index.ts'
import type { NodeDriver } from '../../drivers/node-driver.ts'
import { NetworkText } from '../../os/host/networks.ts'

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
  [K in (typeof nodeDrivers)[number] as Underscored<K['descriptor']['name']>]: TObject<NonNullable<K['settings']>>
}
const groupName = ({ descriptor }: NodeDriver): string => descriptor.name.replaceAll('-', '_')
const kindGroups = Object.fromEntries(
  nodeDrivers.flatMap((driver: NodeDriver) =>
    driver.settings === undefined ? [] : [[groupName(driver), group(driver.settings)]],
  ),
) as unknown as KindGroups

/** The group of settings of a kind. */
export const groupOf = (settings: Settings, kind: NodeDriver): Readonly<Record<string, unknown>> =>
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
    port: whole(0, 3080, 'TCP port to listen on; 0 picks a free one', { maximum: 65535 }),
    data: text('Directory of all state', { minLength: 1, default: '~/.local/share/patchbay' }),
    log_level: oneOf(['silent', 'error', 'warn', 'info', 'debug'], {
      default: 'info',
      description: 'Minimum severity of messages in the log',
      reload: true,
    }),
    local: Type.Optional(
      Type.Boolean({
        description:
          'Local mode: allow project and image paths anywhere this user can read. Never applies to requests from a gateway. Default: on if host is loopback and join.url is not set',
      }),
    ),
    gateway: off('Run as a gateway: run no nodes, and place labs on the computes that are registered or join'),
    insecure: off('Allow non-loopback access without credentials, and HTTP Basic without TLS'),
    user: text('User name for HTTP Basic'),
    password: text('Password for HTTP Basic', { secret: true }),
    password_file: text('File that has the password on one line', { fileOf: 'password' }),
    token: text('Bearer token', { secret: true }),
    token_file: text('File that has the token on one line', { fileOf: 'token' }),
    allowed_hosts: words('Host names that clients may use for the service, in addition to its own addresses', {
      reload: true,
    }),
    allowed_origins: words('Origins of web pages that may use the service', { reload: true }),
    trusted_proxies: words(
      'Addresses or networks (10.0.0.0/8) of proxies whose X-Forwarded-For, X-Forwarded-Proto and Forwarded are trusted',
      { reload: true },
    ),
    console_host: Type.Optional(Type.String({ description: 'Address that consoles listen on. Default: 127.0.0.1' })),
    console_replay: Type.Boolean({
      default: true,
      reload: true,
      description:
        'Whether a new telnet client first gets the scroll-back of the console. A change applies to nodes started afterwards',
    }),
    console_port_range: portRange(5000, 10000, 'TCP ports for consoles, inclusive'),
    vnc_port_range: portRange(11000, 12000, 'TCP ports for VNC consoles, inclusive'),
    udp_port_range: portRange(20000, 30000, 'UDP ports for links, inclusive'),
    allowed_interfaces: Type.Array(Type.String({ minLength: 1, maxLength: 64 }), {
      default: [],
      description:
        'Network devices of the host that NIOs may use; * matches any text. If empty: all in local mode, otherwise none',
      reload: true,
    }),
    udp_peers: Type.Array(NetworkText, {
      default: [],
      description:
        'Networks of other hosts that nio_udp and UDP ports of clouds may send to outside local mode. Not needed for links between computes',
      reload: true,
    }),
    sandbox: oneOf(['auto', 'bubblewrap', 'namespaces', 'off'], {
      default: 'auto',
      description:
        'How emulators are confined outside local mode; auto uses bubblewrap if it is installed, otherwise namespaces',
    }),
    require_sandbox: off('Outside local mode, refuse to run an emulator that cannot be confined', { reload: true }),
    emulator_user: text(
      'User (or UID:GID) that runs confined emulators if the service is root; otherwise the user of the service runs them',
      { minLength: 1, default: 'nobody', reload: true },
    ),
    executables: Type.Array(
      Type.String({ pattern: '^[0-9a-fA-F]{64}$', expects: 'a SHA-256 digest, 64 hexadecimal digits' }),
      {
        default: [],
        description:
          'SHA-256 digests of IOU images that may run outside local mode, in addition to images that administrators uploaded',
        reload: true,
      },
    ),
    on_exit: oneOf(['stop', 'keep'], {
      default: 'stop',
      description: 'What happens to running nodes when the service ends: they stop, or keep running',
      reload: true,
    }),
    min_free_space_mb: whole(0, 200, 'If less disk space than this (MB) is free, nothing new is written', {
      reload: true,
    }),
    additional_images_path: words('Directories to search for images, after the one in the data directory'),
    aliases: Type.Record(Type.String({ pattern: '^[a-z0-9-]+$' }), Type.String({ pattern: '^[a-z0-9-]+$' }), {
      default: {},
      description: 'Aliases for words in URL paths, such as vpcs = "pc"',
    }),
    clients: oneOf(['patchbay', 'gns3'], {
      default: 'patchbay',
      description: 'Which API dialect (names, members, statuses) the service speaks; gns3 is the dialect of GNS3 2.2',
    }),
    clients_version: text('With clients = "gns3": the version reported to clients that do not send their own', {
      default: '2.2.59',
    }),
    clients_streams_to: words(
      'With clients = "gns3": addresses or networks of controllers that get consoles and captures without credentials, because GNS3 2.2 sends none for them',
      { reload: true },
    ),
    clients_web_ui: text('With clients = "gns3": directory of the files of the web client, served at /static/web-ui/'),
    tls: group({
      cert: text(
        'PEM file of the certificate and its chain; with it the service uses https. Read again when it changes',
        {
          reload: true,
        },
      ),
      key: text('PEM file of its private key', { reload: true }),
    }),
    ssh: group({
      port: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: 65535,
          description:
            'TCP port for SSH clients, which open consoles with the public keys of tokens (not at a Worker). Default: none, SSH is off',
        }),
      ),
      host: text('Address to listen on for SSH clients', { minLength: 1, default: '127.0.0.1' }),
    }),
    join: group({
      url: text(
        'Gateway to join, wss://...; the gateway reaches this compute over the connection that the compute keeps open',
        {
          flag: 'join',
        },
      ),
      token: text('Join token from that gateway. Default: the setting token', { secret: true }),
      token_file: text('File that has the join token on one line', { fileOf: 'join.token' }),
      addresses: words(
        'IP addresses at which other computes can reach this one for links, in addition to the addresses of its interfaces',
        { reload: true, maxItems: maxToldAddresses },
      ),
    }),
    fleet: group({
      join_tokens: Type.Array(
        Type.String({
          pattern: '^([A-Za-z0-9_][A-Za-z0-9._~-]{0,99}:)?[A-Za-z0-9._~+/=-]{16,512}$',
          expects: 'a string of at least 16 letters, digits, ".", "_", "~", "+", "/", "=" and "-"',
        }),
        {
          default: [],
          description:
            'Join tokens, one for each compute: TOKEN belongs to the first compute that uses it, COMPUTE_ID:TOKEN to that compute',
          secret: true,
          reload: true,
        },
      ),
      keep_archives: Type.Boolean({
        default: false,
        description:
          'Whether a gateway keeps an archive of each closed project. If its compute is gone, a drain restores the project from the archive on another compute',
      }),
      drain_s: whole(
        1,
        defaultDrainS,
        'Time limit for draining a compute, s. After that the job lists the projects that are left',
        {
          maximum: 604_800,
          reload: true,
        },
      ),
    }),
    limits: group({
      json_kb: whole(1, 1024, 'Largest JSON body, KB'),
      image_gb: whole(1, 100, 'Largest upload of an image, GB', { maximum: 1_000_000, reload: true }),
      feeds: whole(1, 64, 'Most open notification feeds of a project', { reload: true }),
      history: whole(1, 1024, 'Events of a project that are kept for feeds that reconnect'),
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
        'Most memory for all open projects and their undo history, MiB; never more than a sixth of the heap. A project that does not fit stays closed',
        { maximum: 65_536, reload: true },
      ),
      templates: whole(0, defaultLabLimits.templates, 'Most templates that users have made', {
        maximum: 100_000,
        reload: true,
      }),
      templates_mb: whole(
        0,
        defaultLabLimits.templates_mb,
        'Largest size of the templates that users have made, and of their symbols, MiB as JSON (for each of the two)',
        {
          maximum: 1024,
          reload: true,
        },
      ),
      projects: whole(1, defaultLabLimits.projects, 'Most projects', { maximum: 1_000_000, reload: true }),
      token_projects: whole(
        1,
        defaultLabLimits.token_projects,
        'Most projects in the scope of a token that is limited to certain projects',
        {
          maximum: 1_000_000,
          reload: true,
        },
      ),
      wrong_logins: whole(
        0,
        10,
        'Failed log-ins per minute from one address with one name; ten times as many from one address with any names. 0: no limit',
        { maximum: 1_000_000, reload: true },
      ),
      header_timeout_ms: whole(100, 10_000, 'Timeout for receiving the headers of a request, ms'),
      body_timeout_ms: whole(100, 60_000, 'Timeout for receiving more of a request body, ms'),
    }),
    mcp: group({
      approve: off('Assistants (MCP) change nothing before they confirm the number of its plan', { reload: true }),
    }),
    rate_limit: group({
      per_s: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: 1_000_000,
          description:
            'Requests per second for one token or other credential; 0: no limit. Default: 100 on a gateway, otherwise 0',
          reload: true,
        }),
      ),
      burst: whole(0, 0, 'Largest burst of requests after a pause; 0: three times the requests per second', {
        maximum: 1_000_000,
        reload: true,
      }),
    }),
    cloudflare_access: group({
      team_domain: text(
        'Team domain of Cloudflare Access, such as team.cloudflareaccess.com; with it (and audience) its users are accepted',
        {
          pattern: '^([a-z0-9-]+(\\.[a-z0-9-]+)+)?$',
          expects: 'a domain such as team.cloudflareaccess.com',
        },
      ),
      audience: text('The Application Audience (AUD) tag of Cloudflare Access'),
      role: Type.Union(Role.anyOf, { default: 'operate', description: 'Role of the users of Cloudflare Access' }),
      admins: Type.Array(Type.String({ minLength: 3 }), {
        default: [],
        description: 'E-mail addresses of users of Cloudflare Access with the role admin',
      }),
      organizations: Type.Record(Type.String({ pattern: '^[a-z0-9-]+(\\.[a-z0-9-]+)+$' }), OrganizationId, {
        default: {},
        description:
          'Organization of users of Cloudflare Access by the domain of their e-mail address, such as "school.example" = "school"; all other users belong to default',
      }),
    }),
    ...kindGroups,
  },
  { additionalProperties: false },
)
