import { createHash } from 'node:crypto'
import { realpathSync } from 'node:fs'
import { hostname, networkInterfaces } from 'node:os'
import { type App, createApp, handleSteps } from '../../../src/app.ts'
import { ApiError } from '../../../src/lib/errors/api-error.ts'
import { isLoopback } from '../../../src/lib/http/network.ts'
import type { Upgrade } from '../../../src/lib/http/socket.ts'
import { counted } from '../../../src/lib/text/counted.ts'
import type { Verifier } from '../../../src/model/access/identity.ts'
import { defaultOrganization, withoutLimits } from '../../../src/model/organization.ts'
import type { Access } from '../../../src/server/access/access.ts'
import type { AdmissionParts, AppOptions } from '../../../src/server/app-options.ts'
import type { Dialect } from '../../../src/server/http/dialect.ts'
import { OrganizationTickets } from '../../../src/server/http/tickets.ts'
import type { RequestStep } from '../../../src/server/request-context.ts'
import { allowOrigin } from '../../../src/server/steps/allow-origin.ts'
import { answerErrors } from '../../../src/server/steps/answer-errors.ts'
import { authenticate } from '../../../src/server/steps/authenticate.ts'
import { authorize } from '../../../src/server/steps/authorize.ts'
import { delegateRequest } from '../../../src/server/steps/delegate-request.ts'
import { findEndpoint } from '../../../src/server/steps/find-endpoint.ts'
import { finishResponse } from '../../../src/server/steps/finish-response.ts'
import { limitRate } from '../../../src/server/steps/limit-rate.ts'
import { recordRequest } from '../../../src/server/steps/record-request.ts'
import { refuseOwnRequests } from '../../../src/server/steps/refuse-own-requests.ts'
import { openDataDirectory } from '../engine/storage/data-directory.ts'
import { removeServiceFile, writeServiceFile } from '../engine/storage/service-file.ts'
import { ServiceRecords } from '../engine/storage/service-records.ts'
import { createLog, type Log } from '../os/log/log.ts'
import { replacedFileError } from '../os/programs/replaced-files.ts'
import { reasonOf } from '../os/system/error-reason.ts'
import { IdleMemory } from '../os/system/idle-memory.ts'
import { type ProcessLock, takeLock } from '../os/system/process-lock.ts'
import { version } from '../os/system/version.ts'
import { openAuth } from './auth/open-auth.ts'
import type { Resolved } from './config/config.ts'
import type { LoadedConfig } from './config/load.ts'
import { startLine } from './config/start-line.ts'
import { isOwnRequest } from './fleet/own-requests.ts'
import { assetsWith } from './http/assets.ts'
import { runAs } from './http/caller.ts'
import { Certificate } from './http/certificate.ts'
import { isIn, networkList, peerOf, peerOfMessage } from './http/peer.ts'
import { json, listen, relayed } from './http/server.ts'
import { WebSockets } from './http/websocket.ts'
import { computeIdOf } from './join/compute-id.ts'
import { contentAtGateway } from './join/content-at-gateway.ts'
import { Joiner } from './join/joiner.ts'
import { type LabRuntime, openCompute, openGateway } from './lab-runtime.ts'
import { ReaderThreads } from './labs/reader-threads.ts'
import { NodeOrganizations } from './organizations/node-organizations.ts'
import type { LogInOptions } from './ssh/log-in.ts'
import type { SshOptions } from './ssh/ssh-server.ts'

const endMs = 20_000

/** Why the service cannot start, for the person who starts it: shown without a stack trace. */
export class StartError extends Error {
  override readonly name = 'StartError'
}

/** Runs the service until a signal ends it; resolves with the exit code. */
export async function serve(config: LoadedConfig): Promise<number> {
  const { current } = config
  // First of all: a signal without a handler would end the process, and leave the nodes of the service before running.
  const end = ended()
  const { isSquatted } = await lock(current.data)
  const log = createLog(current.log_level)
  if (isSquatted)
    log.warn(
      {},
      'another user of this host has the name of the lock of 0.1.0, which would not start on this data directory',
    )
  for (const warning of config.warnings) log.warn({}, warning)
  const fatal = (event: string) => (error: unknown) => {
    // The keeper holds the lab: ending is safer than going on in an unknown state.
    log.error({ err: error }, event)
    process.exit(1)
  }
  process.on('uncaughtException', fatal('uncaught exception'))
  process.on('unhandledRejection', fatal('unhandled rejection'))

  const certificate = await Certificate.open(config, log).catch(({ message }: Error) => {
    throw new StartError(message)
  })
  const { data } = current
  const records = await ServiceRecords.open({ data, minFreeMb: () => config.current.min_free_space_mb, log })
  const tickets = new OrganizationTickets()
  const organizations: NodeOrganizations | undefined = current.gateway
    ? await NodeOrganizations.open({
        config,
        log,
        records,
        tickets,
        openGateway: openGateway,
        appOf: ({ agent, services }, ownTokens, organization) =>
          createApp({
            ...common,
            agent,
            organization,
            admission: admits,
            services: { ...services, tokens: tokens && ownTokens },
            // The service counts requests before an organization gets them.
            answerAsClient: (request, identity) => app.fetch(request, identity),
          }),
      }).catch(notReadable)
    : undefined
  const { tokens, verifier, rateLimit, logins, sessions } = await openAuth({
    config,
    log,
    records,
    isGateway: current.gateway,
    authOf: async (id) => organizations?.authOf(id),
  }).catch(notReadable)
  const tokensOf: LogInOptions['tokensOf'] = async (organization) =>
    organization === undefined ? tokens : (await organizations?.authOf(organization))?.tokens
  if (isBasicRefused(current))
    log.warn({}, 'HTTP Basic is refused to other hosts: set tls.cert and tls.key, or insecure')
  const computeId = current.join.url === '' ? undefined : await idFor(current.data)
  const webSockets = new WebSockets(() => app.serviceHeaders())
  const memory = new IdleMemory()
  const readerThreads = new ReaderThreads()
  let { port } = current
  const open = current.gateway ? openGateway : openCompute
  const answerOwnRequest = (request: Request) => app.answerOwnRequest(request)
  const limits = () => organizations?.limitsOf(defaultOrganization) ?? withoutLimits
  const labRuntime = await open({ config, log, records, tokens, limits, port: () => port, answerOwnRequest }).catch(
    notReadable,
  )
  const admits = { access: accessOf(config, verifier), peer: peerOf(config), tickets } satisfies AdmissionParts
  /** What the app of each organization has, too. */
  const common = {
    version,
    runtime: {
      runAs,
      json,
      relayed,
      read: readerThreads.read,
      upgrade: webSockets.upgrade,
      assets: assetsWith(current.clients_web_ui),
      startLine: () => startLine(config, port),
      assistants: { approves: () => config.current.mcp.approve },
      apiErrorOf: replacedFileError,
      report: (error, request) => log.error({ err: error, request }, 'a request failed'),
    },
    dialect: await dialectOf(current),
    jsonBytes: current.limits.json_kb * 1024,
    aliases: current.aliases,
    steps: { admit: nodeAdmitSteps },
    // `by` has the name of the credential.
    trace({ credential: _, ...entry }) {
      memory.recordRequest()
      const { log_level } = config.current
      if (log.level !== log_level) log.level = log_level
      log.debug(entry, 'request')
    },
  } satisfies Partial<AppOptions>
  const app: App = createApp({
    ...common,
    agent: labRuntime.agent,
    services: { ...labRuntime.services, tokens, organizations: organizations?.all },
    admission: {
      ...admits,
      rateLimit,
      logins,
      sessions,
      ...(organizations && { countForOrganization: (identity) => organizations.count(identity) }),
    },
    steps: {
      admit: nodeAdmitSteps,
      handle: organizations
        ? [delegateRequest((admitted) => organizations.answer(admitted)), ...handleSteps]
        : handleSteps,
    },
  })
  void organizations?.start()
  const server = await listen({
    host: current.host,
    port: current.port,
    headerTimeoutMs: current.limits.header_timeout_ms,
    bodyTimeoutMs: current.limits.body_timeout_ms,
    app,
    webSockets,
    report: (error) => log.error({ err: error }, 'an answer could not be written'),
    peer: peerOfMessage(config),
    certificate,
  }).catch(async (error: NodeJS.ErrnoException) => {
    await labRuntime.close()
    if (error.code === 'EADDRINUSE')
      throw new StartError(`Port ${current.port} of ${current.host} is in use; choose another one with --port`)
    const address = `${current.host}:${current.port}`
    throw new StartError(`${address} cannot be listened on: ${reasonOf(error)}; choose others with --host and --port`)
  })
  port = Number(new URL(server.url).port)
  const ssh = await openSsh(current, { app, webSockets, logins, log, tokensOf }).catch(async (error: Error) => {
    await server.close()
    await labRuntime.close()
    throw error
  })
  const tell = () => printCommands(config, server.url, log)
  tell()
  config.listen(tell)
  sayReady(server.url, current, labRuntime.reopened)
  memory.recordStart()
  // Not awaited: the appliance VM takes minutes to start, and the compute `vm` shows its progress.
  labRuntime.services.appliance?.ready().catch(({ message }: Error) => log.warn({}, message))
  const joiner = computeId === undefined ? undefined : join(config, computeId, log, app)
  await end
  memory.close()
  removeServiceFile(data)
  await joiner?.close()
  await ssh?.close()
  certificate?.close()
  await exitAfter(() => server.close())
  await exitAfter(async () => organizations?.close())
  await exitAfter(() => readerThreads.close())
  // Without `exitAfter`: the guest needs time to shut down, and `end` has a timeout of its own.
  await labRuntime.closeApplianceVm()
  await exitAfter(() => labRuntime.close())
  return 0
}

/** The steps of `admitSteps`, and the refusal of requests that the service has sent itself. */
const nodeAdmitSteps: readonly RequestStep[] = [
  recordRequest,
  finishResponse,
  answerErrors,
  refuseOwnRequests(isOwnRequest),
  authenticate,
  allowOrigin,
  limitRate,
  findEndpoint,
  authorize,
]

/** Tells the commands of this user where the service is, and the token that lets them in. */
function printCommands({ current }: LoadedConfig, url: string, log: Log): void {
  try {
    writeServiceFile(current.data, {
      url,
      version,
      on_exit: current.on_exit,
      ...(current.token !== '' && { token: current.token }),
    })
  } catch (error) {
    // On a full disk the service still starts, to delete things.
    log.warn({ err: error }, 'commands cannot be told where the service is: they need --server')
  }
}

/** Rethrows the error of a record that cannot be read or renamed as a StartError. */
function notReadable(error: Error): never {
  if (error instanceof ApiError) throw new StartError(error.message)
  const { path } = error as NodeJS.ErrnoException
  throw path === undefined ? error : new StartError(`${path}: ${reasonOf(error)}`)
}

/** Writes to standard output: the line that tools look for, the addresses, and what the service took over. */
function sayReady(url: string, { data, ssh }: Resolved, reopened: LabRuntime['reopened']): void {
  // The program that started us may close the pipe after the first line.
  process.stdout.on('error', () => {})
  const sshLine = ssh.port === undefined ? '' : `  consoles    ssh -p ${ssh.port} LAB/NODE@${ssh.host}\n`
  process.stdout.write(
    `Patchbay ${version} is ready on ${url}\n  labs        ${url}/\n  reference   ${url}/docs\n  data        ${data}\n${sshLine}`,
  )
  void reopened?.then(({ projects, runningNodes }) => {
    if (projects === 0) return
    process.stdout.write(`  taken over  ${counted(projects, 'project')}, ${counted(runningNodes, 'running node')}\n`)
  })
}

/** Listens for SSH clients where the settings say so; its library is loaded only then. */
async function openSsh(
  { ssh: { host, port }, data }: Resolved,
  options: Omit<SshOptions, 'host' | 'port' | 'hostKey'>,
): Promise<{ close(): Promise<void> } | undefined> {
  if (port === undefined) return undefined
  const [{ listenForSsh }, { hostKeyOf }] = await Promise.all([
    import('./ssh/ssh-server.ts'),
    import('./ssh/host-key.ts'),
  ])
  const hostKey = await hostKeyOf(data).catch(notReadable)
  return listenForSsh({ ...options, host, port, hostKey }).catch((error: NodeJS.ErrnoException) => {
    const why = error.code === 'EADDRINUSE' ? 'is in use' : `cannot be listened on: ${reasonOf(error)}`
    throw new StartError(`Port ${port} of ${host} ${why}; choose others with --ssh-port and --ssh-host`)
  })
}

/** Joins the gateway of the configuration, whose requests the app then answers. */
function join({ current }: LoadedConfig, compute_id: string, log: Log, app: App): Joiner {
  const who = { version, compute_id, name: hostname() }
  const read = contentAtGateway(current.join.url)
  const answered = async (request: Request, upgrade: Upgrade) => {
    const received = await read(request)
    return received instanceof Request ? app.answerFromTunnel(received, upgrade) : received
  }
  return new Joiner({ ...current.join, who, fetch: answered, log })
}

const idFor = (data: string): Promise<string> =>
  computeIdOf(data).catch((error: Error) => {
    throw new StartError(`The id of this compute cannot be written to ${data}: ${reasonOf(error)}`)
  })

/** Awaits the work; ends the process when it takes longer than `endMs`. */
async function exitAfter(work: () => Promise<void>): Promise<void> {
  const timer = setTimeout(() => process.exit(1), endMs)
  await work()
  clearTimeout(timer)
}

/** npm forwards a signal that the terminal has sent to the whole process group: a second signal within this time, ms, is the same. */
const sameSignalMs = 500

/** Resolves at the first signal that ends the service; the second signal ends the process at once. */
function ended(): Promise<void> {
  return new Promise((resolve) => {
    let began: number | undefined
    // The same handler from first to last: between two handlers a signal would kill the process.
    const end = () => {
      if (began !== undefined && performance.now() - began > sameSignalMs) process.exit(1)
      began ??= performance.now()
      resolve()
    }
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT']) process.on(signal, end)
  })
}

async function dialectOf({ clients, clients_version, clients_web_ui }: Resolved): Promise<Dialect | undefined> {
  if (clients !== 'gns3') return undefined
  const { gns3Dialect } = await import('../../../src/endpoints/gns3/dialect.ts')
  return gns3Dialect({ version: clients_version, own: version, hasWebUi: clients_web_ui !== '' })
}

/** Whether the service refuses `user` and `password` from other hosts, because the connection is not encrypted. */
const isBasicRefused = ({ host, user, tls, trusted_proxies, insecure }: Resolved): boolean =>
  user !== '' &&
  !isLoopback(host) &&
  host !== 'localhost' &&
  tls.cert === '' &&
  trusted_proxies.length === 0 &&
  !insecure

/** What `Access` checks, computed again when the configuration changes. */
function accessOf(config: LoadedConfig, verifier: Verifier | undefined): () => Access {
  let seen: object | undefined
  let access: Access
  return () => {
    const { current } = config
    if (seen === current) return access
    seen = current
    const { user, password, token, insecure: takesPlainBasic } = current
    const controllers = networkList(current.clients === 'gns3' ? current.clients_streams_to : [])
    access = {
      hosts: new Set([...ownNames(current.host), ...current.allowed_hosts.map((name) => name.toLowerCase())]),
      allowedOrigins: new Set(current.allowed_origins.map((origin) => origin.toLowerCase().replace(/\/$/, ''))),
      user,
      password,
      token,
      verifier,
      takesPlainBasic,
      streamsTo: (address) => isIn(controllers, address),
    }
    return access
  }
}

/** The names by which clients on this network may call a service that listens on `host`. */
function ownNames(host: string): string[] {
  const names = ['localhost', '127.0.0.1', '[::1]', bracketed(host)]
  if (host !== '0.0.0.0' && host !== '::') return names
  const addresses = Object.values(networkInterfaces()).flatMap((all) =>
    (all ?? []).map(({ address }) => bracketed(address)),
  )
  return [...names, hostname().toLowerCase(), ...addresses]
}

const bracketed = (host: string): string =>
  host.includes(':') ? `[${host.toLowerCase().split('%')[0]}]` : host.toLowerCase()

/** Lets one service use a data directory. */
async function lock(data: string): Promise<ProcessLock> {
  try {
    openDataDirectory(data)
  } catch (error) {
    throw new StartError(
      `The data directory ${data} cannot be made or written to: ${reasonOf(error)}; choose another one with --data`,
    )
  }
  const name = createHash('sha256').update(realpathSync(data)).digest('hex').slice(0, 32)
  const held = await takeLock({
    file: `${data}/serve.lock`,
    socket: `patchbay-serve-${process.getuid?.() ?? 0}-${name}`,
  }).catch((error: Error) => {
    throw new StartError(`The data directory ${data} cannot be locked: ${reasonOf(error)}`)
  })
  if (held === undefined)
    throw new StartError(`Another Patchbay runs on the data directory ${data}; end it, or choose another with --data`)
  return held
}
