import { existsSync } from 'node:fs'
import { mkdir, rm, symlink } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { netioDirectory } from '../../dataplane/fast/netio-directory.ts'
import { bridgeOffset } from '../../dataplane/fast/netio-socket.ts'
import type { Launch } from '../../engine/nodes/kind.ts'
import { warningsOf } from '../../engine/nodes/warnings.ts'
import { replaceOwn } from '../../engine/storage/own-files.ts'
import type { ProcessSpec } from '../../keeper/protocol/protocol.ts'
import { give, insideBox, makeBox, putIntoBox } from '../../os/sandbox/box.ts'
import type { Confinement, Sandbox } from '../../os/sandbox/sandbox.ts'
import { checkMemory } from '../../os/system/memory.ts'
import { commandLine } from './command-line.ts'
import { adoptFiles } from './configs.ts'
import { imageFactsOf, requireIouImage } from './image.ts'
import { linkImage } from './image-link.ts'
import { findLicence, hostnameWarning, type LicencePaths, licenceName, requireLicence } from './licence.ts'
import { netmapName, netmapText } from './netmap.ts'
import { pushConfigs } from './nvram-files.ts'
import { type IouKindNode, withDefaultsOf } from './properties.ts'

const logName = 'iou.log'

interface LaunchOptions {
  readonly sandbox: Sandbox
  readonly runDirectory: string
  /** Absolute path. */
  readonly image: string
  readonly paths: LicencePaths
  readonly isLicenceChecked: boolean
}

/** Prepares the start of a router; 409 with the reason when it cannot start. */
export async function launchOf(node: IouKindNode, options: LaunchOptions): Promise<Launch> {
  const { directory } = node
  const notConfined: string[] = []
  const confinement = await options.sandbox.confinement((reason) => notConfined.push(reason))
  // The facts are cached, but the host may have changed since.
  await requireIouImage(options.image)
  const facts = await imageFactsOf(options.image, confinement)
  node.record.properties = withDefaultsOf(node.record.properties, facts)
  const properties = node.record.properties
  const { application_id, nvram, ram } = properties
  const args = commandLine({ settings: properties, facts, applicationId: application_id })
  const memoryWarning = checkMemory(ram)
  const licence = await findLicence(options.paths)
  if (options.isLicenceChecked) await requireLicence(licence, hostname())
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
  return {
    command_line: [link.path, ...args].join(' '),
    notices: warningsOf(node, warnings),
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

/**
 * The router in a cell. The cell has its own socket directory with the socket of the bridge (the switch) and no other instance. A
 * link in the common socket directory leads the switch to the socket of the router.
 */
async function confined(
  node: IouKindNode,
  confinement: Confinement,
  {
    command,
    args,
    licence,
    options,
  }: { command: string; args: readonly string[]; licence: string; options: LaunchOptions },
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
  const mounts = [
    { from: join(box, licenceName), at: join(insideBox, licenceName), isWritable: false },
    { from: sockets, at: inside, isWritable: true },
    { from: join(netioDirectory(), bridge), at: join(inside, bridge), isWritable: true },
  ].filter(({ from }) => existsSync(from))
  const cell = {
    cwd: directory,
    network: 'none',
    writable: [directory],
    readable: [options.image],
    mounts,
  } as const
  return { ...confinement.wrap(cell, command, args), env, is_wrapped: true }
}
