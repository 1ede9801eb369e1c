import { existsSync } from 'node:fs'
import { mkdir, rm, symlink } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import type { EventPayload } from '../../../../src/model/event.ts'
import type { ProcessSpec } from '../../keeper-protocol/protocol.ts'
import { give, insideBox, makeBox, putIntoBox } from '../../sandbox/box.ts'
import type { Confinement, Sandbox } from '../../sandbox/sandbox.ts'
import { netioDirectory } from '../../switch/fast/netio-directory.ts'
import { bridgeOffset } from '../../switch/fast/netio-socket.ts'
import { checkMemory } from '../../system/memory.ts'
import type { Launch } from '../kind.ts'
import { commandLine } from './command-line.ts'
import { adoptFiles } from './configs.ts'
import { type IouImageFacts, imageFactsOf, requireIouImage } from './image.ts'
import { linkImage } from './image-link.ts'
import { findLicence, hostnameWarning, type LicencePlaces, licenceName, requireLicence } from './licence.ts'
import { netmapName, netmapText } from './netmap.ts'
import { pushConfigs } from './nvram-files.ts'
import { replaceOwn } from './own-files.ts'
import { type IouKindNode, withDefaultsOf } from './properties.ts'

export const logName = 'iou.log'

export interface LaunchOptions {
  readonly sandbox: Sandbox
  readonly runDirectory: string
  /** Absolute. */
  readonly image: string
  readonly places: LicencePlaces
  readonly isLicenceChecked: boolean
}

/** Checks and makes what a router needs, and says how it is run; 409 with what is missing. */
export async function launchOf(node: IouKindNode, options: LaunchOptions): Promise<Launch> {
  const { record, directory } = node
  const notConfined: string[] = []
  const confinement = await options.sandbox.confinement((reason) => notConfined.push(reason))
  const facts = await factsOf(options.image, confinement)
  node.record.properties = withDefaultsOf(node.record.properties, facts)
  const properties = node.record.properties
  const { application_id, nvram, ram } = properties
  const args = commandLine({ settings: properties, facts, applicationId: application_id })
  const memoryWarning = checkMemory(ram)
  const licence = await licenceOf(options)
  await adoptFiles(directory, application_id)
  await replaceOwn(directory, netmapName, netmapText(application_id))
  const warnings = [
    ...(await pushConfigs(directory, application_id, nvram)),
    memoryWarning,
    hostnameWarning(hostname()),
    ...notConfined,
  ]
  const link = await linkImage(directory, options.image, properties.link)
  node.record.properties = { ...properties, link: link.name }
  const notices = warnings
    .filter((warning) => warning !== undefined)
    .map((warning): EventPayload => ({ type: 'log.warning', message: `${record.name}: ${warning}` }))
  return {
    command_line: [link.path, ...args].join(' '),
    notices,
    run: {
      type: 'process',
      ...(confinement === undefined
        ? { command: link.path, args, env: { IOURC: licence } }
        : await confined(node, confinement, { command: link.path, args, licence, options })),
      cwd: directory,
      log: join(directory, logName),
      stdio: 'pipe',
    },
  }
}

/** What it said once is known, but whether this host can run it may have changed since. */
async function factsOf(image: string, confinement: Confinement | undefined): Promise<IouImageFacts> {
  await requireIouImage(image)
  return imageFactsOf(image, confinement)
}

interface Confined {
  readonly command: string
  readonly args: readonly string[]
  readonly licence: string
  readonly options: LaunchOptions
}

/**
 * The router in a cell. The directory of its sockets is its own: it meets the socket of its bridge there, which is the switch,
 * and no other instance. The switch finds its socket by a link where those of all instances are.
 */
async function confined(
  node: IouKindNode,
  confinement: Confinement,
  { command, args, licence, options }: Confined,
): Promise<Pick<ProcessSpec, 'command' | 'args' | 'env' | 'is_wrapped'>> {
  const { directory, record } = node
  const { application_id } = node.record.properties
  const box = await makeBox(options.runDirectory, record.node_id)
  const sockets = join(box, 'netio')
  await mkdir(sockets, { mode: 0o700 })
  const own = join(netioDirectory(), String(application_id))
  await rm(own, { force: true })
  await symlink(join(sockets, String(application_id)), own)
  const env = { IOURC: await putIntoBox(box, licence, licenceName) }
  await give(confinement.user, directory, box)
  const inside = `/tmp/netio${confinement.uidInside}`
  const bridge = String(application_id + bridgeOffset)
  const placed = [
    { from: join(box, licenceName), at: join(insideBox, licenceName), isWritable: false },
    { from: sockets, at: inside, isWritable: true },
    { from: join(netioDirectory(), bridge), at: join(inside, bridge), isWritable: true },
  ].filter(({ from }) => existsSync(from))
  const cell = { cwd: directory, network: 'none', writable: [directory], readable: [options.image], placed } as const
  return { ...confinement.wrap(cell, command, args), env, is_wrapped: true }
}

async function licenceOf({ places, isLicenceChecked }: LaunchOptions): Promise<string> {
  const path = await findLicence(places)
  if (isLicenceChecked) await requireLicence(path, hostname())
  return path
}
