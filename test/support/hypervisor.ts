import { randomUUID } from 'node:crypto'
import { chmod, copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { guestCommandLine, guestFiles, guestRam } from './guest/files.ts'
import type { TestLibvirt } from './libvirt.ts'
import { TestService } from './service.ts'

/** A VM as v2 shows it. */
export interface VmNode {
  readonly node_id: string
  readonly node_directory: string | null
  readonly status: string
  readonly status_reason: string | null
  readonly console: number
  readonly remote_console: number | null
  readonly vmname: string
  readonly ram: number
}

/** A service with one project. */
export class VmLab {
  readonly service: TestService
  readonly id: string

  private constructor(service: TestService, id: string) {
    this.service = service
    this.id = id
  }

  static async create(settings: Record<string, unknown>, input = {}): Promise<VmLab> {
    return VmLab.on(await TestService.start({ ...settings }), input)
  }

  /** Another one on a service that is there. */
  static async on(service: TestService, input = {}): Promise<VmLab> {
    const project = { name: 'vms', ...input }
    const { project_id } = await service.call<{ project_id: string }>('POST', '/v1/projects', project)
    return new VmLab(service, project_id)
  }

  get project(): string {
    return `/v2/compute/projects/${this.id}`
  }

  /** The path of a new node. */
  async node(vmname: string, input: Record<string, unknown> = {}): Promise<string> {
    const node_id = randomUUID()
    const nodes = `${this.project}/hypervisor/nodes`
    await this.service.call('POST', nodes, { name: vmname, vmname, node_id, ...input })
    return `${nodes}/${node_id}`
  }

  get(node: string): Promise<VmNode> {
    return this.service.call('GET', node)
  }

  put(node: string, changes: Record<string, unknown>): Promise<VmNode> {
    return this.service.call('PUT', node, changes)
  }

  async post(node: string, ...actions: readonly string[]): Promise<void> {
    for (const action of actions) await this.service.call('POST', `${node}/${action}`)
  }

  /** The status of the answer, and what it says. */
  async answer(method: string, path: string, body?: unknown): Promise<[status: number, message: string]> {
    const answer = await this.service.fetch(path, { method, ...(body !== undefined && { body: JSON.stringify(body) }) })
    const text = await answer.text()
    return [answer.status, text === '' ? '' : ((JSON.parse(text) as { message?: string }).message ?? '')]
  }
}

/** The definition of a VM that boots the test guest from copies of its files: libvirt makes them those of its own user. */
export async function guestDefinition(libvirt: TestLibvirt, name: string, words: string): Promise<string> {
  const files = await guestFiles()
  const [kernel, initrd] = [join(libvirt.directory, 'vmlinux'), join(libvirt.directory, 'initrd.img')]
  await copyFile(files.kernel, kernel)
  await copyFile(files.initrd, initrd)
  for (const file of [kernel, initrd]) await chmod(file, 0o644)
  return `
<domain type='qemu'>
  <name>${name}</name>
  <memory unit='MiB'>${guestRam}</memory>
  <os>
    <type arch='x86_64' machine='pc'>hvm</type>
    <kernel>${kernel}</kernel><initrd>${initrd}</initrd>
    <cmdline>${guestCommandLine(`pb.host=${name} ${words}`)}</cmdline>
  </os>
  <features><acpi/></features>
  <devices>
    <emulator>/usr/bin/qemu-system-x86_64</emulator>
    <controller type='usb' model='none'/>
    <serial type='pty'/>
    <memballoon model='none'/>
  </devices>
</domain>`
}
