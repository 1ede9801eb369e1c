import type { Check } from '../../../src/model/host.ts'
import { addressOf, defaultUri } from '../kinds/hypervisor/libvirt/address.ts'
import { LibvirtClient } from '../kinds/hypervisor/libvirt/client.ts'
import { findDaemon, installCommand } from '../kinds/hypervisor/libvirt/daemon.ts'
import { isAbsence } from '../kinds/hypervisor/libvirt/libvirt-error.ts'
import { procedures } from '../kinds/hypervisor/libvirt/protocol.ts'

const probeMs = 5000
const name = 'libvirt'
const use = 'for hypervisor nodes'

/** Whether a libvirt answers at the URI, and which. That of a session is not started for it. */
export async function libvirtCheck(uri: string = defaultUri()): Promise<Check> {
  const client = new LibvirtClient({ uri: () => uri, connectMs: probeMs, startsDaemon: false })
  try {
    const number = Number((await client.call(procedures.connectGetLibVersion, undefined, probeMs)).hyper())
    const version = [number / 1e6, (number / 1e3) % 1e3, number % 1e3].map(Math.floor).join('.')
    return { name, status: 'ok', found: `${version}, ${uri}`, fix: null }
  } catch (error) {
    return isAbsence(error) ? absent(uri) : refused(error as Error)
  } finally {
    client.close()
  }
}

function absent(uri: string): Check {
  const daemon = findDaemon()
  if (daemon === undefined) return { name, status: 'warning', found: `not found; ${use}`, fix: installCommand }
  if (addressOf(uri).isSession) {
    return { name, status: 'ok', found: `${daemon}, which is started when ${uri} is needed`, fix: null }
  }
  const unit = daemon.endsWith('virtqemud') ? 'virtqemud.socket' : 'libvirtd'
  const found = `${daemon} is there, but does not answer at ${uri}; ${use}`
  return { name, status: 'warning', found, fix: `sudo systemctl enable --now ${unit}` }
}

/** What is wrong is said with what mends it, after a colon. */
function refused({ message }: Error): Check {
  const [, found = message, fix = null] = /^(.*?): (.*)$/s.exec(message) ?? []
  return { name, status: 'warning', found: `${found}; ${use}`, fix }
}
