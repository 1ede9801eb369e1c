import { type Static, type TObject, Type } from '@sinclair/typebox'
import { Role } from '../../../src/model/access-token.ts'
import type { HostKind } from '../kinds/host-kind.ts'
import { hostKinds } from '../kinds/index.ts'

const portRange = (first: number, last: number, description: string) =>
  Type.Tuple([Type.Integer({ minimum: 1024, maximum: 65535 }), Type.Integer({ minimum: 1024, maximum: 65535 })], {
    default: [first, last],
    description,
    expects: `a range of ports from 1024 to 65535, such as ${first}-${last}`,
  })
const words = (description: string) => Type.Array(Type.String({ minLength: 1 }), { default: [], description })

type Underscored<S extends string> = S extends `${infer A}-${infer B}` ? `${A}_${Underscored<B>}` : S
type KindGroups = {
  [K in (typeof hostKinds)[number] as Underscored<K['descriptor']['name']>]: TObject<NonNullable<K['settings']>>
}
const groupName = ({ descriptor }: HostKind): string => descriptor.name.replaceAll('-', '_')
const kindGroups = Object.fromEntries(
  hostKinds.flatMap((kind: HostKind) =>
    kind.settings === undefined
      ? []
      : [[groupName(kind), Type.Object(kind.settings, { default: {}, additionalProperties: false })]],
  ),
) as unknown as KindGroups

/** The settings of a kind. */
export const groupOf = (settings: Settings, kind: HostKind): Readonly<Record<string, unknown>> =>
  (settings as unknown as Readonly<Record<string, Readonly<Record<string, unknown>>>>)[groupName(kind)] ?? {}

/**
 * Every setting, once: the configuration file, the environment (`PATCHBAY_` and the key in capitals, `.` as `_`) and the flags
 * (`--` and the key with `-`, or `flag`) are all read by this schema. `reload: true` marks what a reload puts in force without a restart;
 * `secret: true` what is never shown; `fileOf` names the secret that the file of this setting has.
 */
export type Settings = Static<typeof Settings>
export const Settings = Type.Object(
  {
    host: Type.String({ minLength: 1, default: '127.0.0.1', description: 'Address to listen on' }),
    port: Type.Integer({ minimum: 0, maximum: 65535, default: 3080, description: 'TCP port; 0 takes a free one' }),
    data: Type.String({
      minLength: 1,
      default: '~/.local/share/patchbay',
      description: 'Data directory: the whole state',
    }),
    log_level: Type.Union(
      [
        Type.Literal('silent'),
        Type.Literal('error'),
        Type.Literal('warn'),
        Type.Literal('info'),
        Type.Literal('debug'),
      ],
      { default: 'info', description: 'Least severity of what is logged', reload: true },
    ),
    local: Type.Optional(
      Type.Boolean({
        description:
          'Local mode: project paths and images anywhere the user may read; never for requests of a gateway. Default: on when host is loopback and join.url is not set',
      }),
    ),
    gateway: Type.Boolean({
      default: false,
      description: 'Be a gateway: run no nodes, but give labs to the computes that are registered or join',
    }),
    insecure: Type.Boolean({
      default: false,
      description: 'Listen beyond loopback without credentials, and take HTTP Basic there without TLS',
    }),
    user: Type.String({ default: '', description: 'User of HTTP Basic' }),
    password: Type.String({ default: '', description: 'Password of HTTP Basic', secret: true }),
    password_file: Type.String({ default: '', description: 'File with the password, in one line', fileOf: 'password' }),
    token: Type.String({ default: '', description: 'Bearer token', secret: true }),
    token_file: Type.String({ default: '', description: 'File with the token, in one line', fileOf: 'token' }),
    allowed_hosts: Type.Array(Type.String({ minLength: 1 }), {
      default: [],
      description: 'Host names by which clients may call the service, beside its own addresses',
      reload: true,
    }),
    allowed_origins: Type.Array(Type.String({ minLength: 1 }), {
      default: [],
      description: 'Origins of web pages that may use the service',
      reload: true,
    }),
    trusted_proxies: Type.Array(Type.String({ minLength: 1 }), {
      default: [],
      description:
        'Addresses or networks (10.0.0.0/8) of proxies whose X-Forwarded-For, X-Forwarded-Proto and Forwarded are believed',
      reload: true,
    }),
    console_host: Type.Optional(Type.String({ description: 'Address of telnet consoles. Default: loopback' })),
    console_port_range: portRange(5000, 10000, 'TCP ports of consoles, inclusive'),
    vnc_port_range: portRange(11000, 12000, 'TCP ports of VNC consoles, inclusive'),
    udp_port_range: portRange(20000, 30000, 'UDP ports of links, inclusive'),
    allowed_interfaces: Type.Array(Type.String({ minLength: 1, maxLength: 64 }), {
      default: [],
      description:
        'Network devices of the host that NIOs may use, * for any text; without any: all in local mode, else none',
      reload: true,
    }),
    sandbox: Type.Union(
      [Type.Literal('auto'), Type.Literal('bubblewrap'), Type.Literal('namespaces'), Type.Literal('off')],
      {
        default: 'auto',
        description:
          'How emulators are confined outside local mode; auto takes bubblewrap where it is installed, else namespaces',
      },
    ),
    require_sandbox: Type.Boolean({
      default: false,
      description: 'Outside local mode run no emulator where nothing confines it',
      reload: true,
    }),
    emulator_user: Type.String({
      minLength: 1,
      default: 'nobody',
      description:
        'User (or UID:GID) as whom confined emulators run when the service is root; other users run them as themselves',
      reload: true,
    }),
    executables: Type.Array(
      Type.String({ pattern: '^[0-9a-fA-F]{64}$', expects: 'a SHA-256 digest, 64 hexadecimal digits' }),
      {
        default: [],
        description:
          'SHA-256 digests of IOU images that may be run outside local mode, beside those that an administrator uploaded',
        reload: true,
      },
    ),
    on_exit: Type.Union([Type.Literal('stop'), Type.Literal('keep')], {
      default: 'stop',
      description: 'What a polite end of the service does with running nodes',
      reload: true,
    }),
    min_free_space_mb: Type.Integer({
      minimum: 0,
      default: 200,
      description: 'Below this much free disk space (MB) nothing new is written',
      reload: true,
    }),
    additional_images_path: words('Directories searched for images after our own'),
    aliases: Type.Record(Type.String({ pattern: '^[a-z0-9-]+$' }), Type.String({ pattern: '^[a-z0-9-]+$' }), {
      default: {},
      description: 'Other path words for ours, such as vpcs = "pc"',
    }),
    tls: Type.Object(
      {
        cert: Type.String({
          default: '',
          description:
            'PEM file of the certificate, with its chain: the service speaks https. Read again when it changes',
          reload: true,
        }),
        key: Type.String({ default: '', description: 'PEM file of its private key', reload: true }),
      },
      { default: {}, additionalProperties: false },
    ),
    join: Type.Object(
      {
        url: Type.String({
          default: '',
          description: 'Gateway to join, wss://...: it reaches this compute by a connection that is kept to it',
          flag: 'join',
        }),
        token: Type.String({ default: '', description: 'Join token of that gateway. Default: token', secret: true }),
        token_file: Type.String({
          default: '',
          description: 'File with the join token, in one line',
          fileOf: 'join.token',
        }),
      },
      { default: {}, additionalProperties: false },
    ),
    fleet: Type.Object(
      {
        join_tokens: Type.Array(
          Type.String({
            pattern: '^([A-Za-z0-9_][A-Za-z0-9._~-]{0,99}:)?[A-Za-z0-9._~+/=-]{16,512}$',
            expects: 'a text of at least 16 letters, digits, ".", "_", "~", "+", "/", "=" and "-"',
          }),
          {
            default: [],
            description:
              'Tokens with which computes may join, one for each: TOKEN for the first that uses it, or COMPUTE_ID:TOKEN',
            secret: true,
            reload: true,
          },
        ),
      },
      { default: {}, additionalProperties: false },
    ),
    limits: Type.Object(
      {
        json_kb: Type.Integer({ minimum: 1, default: 1024, description: 'JSON body, KB' }),
        image_gb: Type.Integer({
          minimum: 1,
          maximum: 1_000_000,
          default: 100,
          description: 'Upload of an image, GB',
          reload: true,
        }),
        feeds: Type.Integer({
          minimum: 1,
          default: 64,
          description: 'Open notification feeds a project',
          reload: true,
        }),
        history: Type.Integer({
          minimum: 1,
          default: 1024,
          description: 'Events kept for a feed that reconnects, a project',
        }),
        wrong_logins: Type.Integer({
          minimum: 0,
          maximum: 1_000_000,
          default: 10,
          description:
            'Wrong log-ins a minute from one address with one name, and ten times as many from the address; 0: no limit',
          reload: true,
        }),
        header_timeout_ms: Type.Integer({
          minimum: 100,
          default: 10_000,
          description: 'Wait for the headers of a request',
        }),
        body_timeout_ms: Type.Integer({
          minimum: 100,
          default: 60_000,
          description: 'Wait for more of a request body',
        }),
      },
      { default: {}, additionalProperties: false },
    ),
    rate_limit: Type.Object(
      {
        per_s: Type.Optional(
          Type.Integer({
            minimum: 0,
            maximum: 1_000_000,
            description:
              'Requests a second of one token, or of other credentials; 0: no limit. Default: 100 on a gateway, else 0',
            reload: true,
          }),
        ),
        burst: Type.Integer({
          minimum: 0,
          maximum: 1_000_000,
          default: 0,
          description: 'Requests at once after a pause; 0: three times those of a second',
          reload: true,
        }),
      },
      { default: {}, additionalProperties: false },
    ),
    cloudflare_access: Type.Object(
      {
        team_domain: Type.String({
          pattern: '^([a-z0-9-]+(\\.[a-z0-9-]+)+)?$',
          expects: 'a domain such as team.cloudflareaccess.com',
          default: '',
          description: 'Lets in whom Cloudflare Access lets in: the team domain, such as team.cloudflareaccess.com',
        }),
        audience: Type.String({ default: '', description: 'The Application Audience (AUD) tag there' }),
        role: Type.Union(Role.anyOf, { default: 'operate', description: 'What people whom Access lets in may do' }),
        admins: Type.Array(Type.String({ minLength: 3 }), {
          default: [],
          description: 'E-mail addresses of those who may do everything',
        }),
      },
      { default: {}, additionalProperties: false },
    ),
    ...kindGroups,
  },
  { additionalProperties: false },
)
