import type { DoctorCheck } from '../../../../src/model/host.ts'
import { hypervisor } from '../../../../src/model/kinds/hypervisor.ts'
import { ok, preventing, programCheck, warning } from '../../os/programs/checks.ts'
import type { HypervisorSettings } from './drivers.ts'
import { addressOf, defaultUri } from './libvirt/address.ts'
import { LibvirtClient } from './libvirt/client.ts'
import { findDaemon, installCommand } from './libvirt/daemon.ts'
import { isAbsence } from './libvirt/libvirt-error.ts'
import { procedures } from './libvirt/protocol.ts'

const probeMs = 5000
const name = 'libvirt'
const use = 'for hypervisor nodes'

const virtualBox = {
  use: 'for hypervisor nodes, where libvirt is not used',
  install: 'install VirtualBox from its own packages',
}

/** Checks VirtualBox and libvirt: nodes need one of them. */
export async function hypervisorChecks(
  { libvirt_uri }: Pick<HypervisorSettings, 'libvirt_uri'>,
  signal?: AbortSignal,
): Promise<DoctorCheck[]> {
  const checks = await Promise.all([
    programCheck('VirtualBox', ['VBoxManage', 'vboxmanage'], virtualBox, signal),
    libvirtCheck(libvirt_uri || defaultUri()),
  ])
  const isPossible = checks.some(({ status }) => status === 'ok')
  return isPossible ? checks : checks.map((check) => preventing(check, hypervisor.name))
}

/** Checks libvirt at the URI. The daemon of a session is not started for this. */
export async function libvirtCheck(uri: string = defaultUri()): Promise<DoctorCheck> {
  const client = new LibvirtClient({ uri: () => uri, connectMs: probeMs, startsDaemon: false })
  try {
    const number = Number((await client.call(procedures.connectGetLibVersion, undefined, probeMs)).hyper())
    const version = [number / 1e6, (number / 1e3) % 1e3, number % 1e3].map(Math.floor).join('.')
    return ok(name, `${version}, ${uri}`)
  } catch (error) {
    return isAbsence(error) ? absent(uri) : refused(error as Error)
  } finally {
    client.close()
  }
}

function absent(uri: string): DoctorCheck {
  const daemon = findDaemon()
  if (daemon === undefined) return warning(name, `not found; ${use}`, installCommand)
  if (addressOf(uri).isSession) return ok(name, `${daemon}, which is started when ${uri} is needed`)
  const unit = daemon.endsWith('virtqemud') ? 'virtqemud.socket' : 'libvirtd'
  return warning(
    name,
    `${daemon} is there, but does not answer at ${uri}; ${use}`,
    `sudo systemctl enable --now ${unit}`,
  )
}

/** Messages have the form `problem: fix`. */
function refused({ message }: Error): DoctorCheck {
  const [, found = message, fix = null] = /^(.*?): (.*)$/s.exec(message) ?? []
  return warning(name, `${found}; ${use}`, fix)
}
