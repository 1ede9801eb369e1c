import { hostname } from 'node:os'
import { join } from 'node:path'
import type { Happening } from '../../../../src/model/event.ts'
import type { KindNode, Launch } from '../kind.ts'
import { checkMemory } from '../memory.ts'
import { commandLine } from './command-line.ts'
import { adoptFiles } from './configs.ts'
import { type ImageFacts, imageFactsOf, requireIouImage } from './image.ts'
import { linkImage } from './image-link.ts'
import { findLicence, hostnameWarning, type LicencePlaces, requireLicence } from './licence.ts'
import { netmapName, netmapText } from './netmap.ts'
import { pushConfigs } from './nvram-files.ts'
import { replaceOwn } from './own-files.ts'
import { propertiesOf, withDefaultsOf } from './properties.ts'

export const logName = 'iou.log'

export interface LaunchOptions {
  /** Absolute. */
  readonly image: string
  readonly places: LicencePlaces
  readonly isLicenceChecked: boolean
}

/** Checks and makes what a router needs, and says how it is run; 409 with what is missing. */
export async function launchOf(node: KindNode, options: LaunchOptions): Promise<Launch> {
  const { record, directory } = node
  const facts = await factsOf(options.image)
  node.record.properties = withDefaultsOf(propertiesOf(node), facts)
  const properties = propertiesOf(node)
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
  ]
  const link = await linkImage(directory, options.image, properties.link)
  node.record.properties = { ...properties, link: link.name }
  const notices = warnings
    .filter((warning) => warning !== undefined)
    .map((warning): Happening => ({ type: 'log.warning', message: `${record.name}: ${warning}` }))
  return {
    command_line: [link.path, ...args].join(' '),
    notices,
    run: {
      type: 'process',
      command: link.path,
      args,
      cwd: directory,
      log: join(directory, logName),
      stdio: 'pipe',
      env: { IOURC: licence },
    },
  }
}

/** What it said once is known, but whether this host can run it may have changed since. */
async function factsOf(image: string): Promise<ImageFacts> {
  await requireIouImage(image)
  return imageFactsOf(image)
}

async function licenceOf({ places, isLicenceChecked }: LaunchOptions): Promise<string> {
  const path = await findLicence(places)
  if (isLicenceChecked) await requireLicence(path, hostname())
  return path
}
