import { describe, expect, it } from 'vitest'
import { gns3Conventions } from '../../../../src/endpoints/gns3/conventions.ts'
import { requireHostName } from '../../../../src/endpoints/gns3/host-names.ts'
import { theirFile, theirUrl } from '../../../../src/endpoints/gns3/names.ts'
import { IouCreate } from '../../../../src/model/kinds/iou.ts'
import { MachineEmulatorCreate } from '../../../../src/model/kinds/machine-emulator.ts'
import { portsOf } from '../../../../src/model/lab/ports.ts'
import type { Endpoint } from '../../../../src/server/http/endpoint.ts'

describe('the name of a node', () => {
  const nameOf = (wanted: string, ...taken: string[]) => gns3Conventions.nodeName(wanted, (key) => taken.includes(key))

  it('refuses a format that is not known', () => {
    expect(nameOf('{name}-{0}', 'node-1')).toBe('Node-2')
    expect(() => nameOf('{0}{other}')).toThrow(/\{other\}/)
    expect(nameOf('a{b}')).toBe('a{b}')
  })

  it('is found within a limit', () => {
    expect(() => gns3Conventions.nodeName('x'.repeat(255), () => true)).toThrow(/no name is free/)
  })
})

describe('a node of GNS3 3', () => {
  const refuses = (body: unknown, name: string): boolean => {
    try {
      requireHostName({ body } as Endpoint, { name })
      return false
    } catch (error) {
      expect(error).toMatchObject({ status: 409 })
      return true
    }
  }

  it('has the name of a host when it is a machine, and one of IOS when it is a router', () => {
    const names = ['R1', '1R', 'a.b', 'a_b', '-a', 'a-', '7', 'Zürich', 'x'.repeat(64)]
    expect(names.filter((name) => !refuses(MachineEmulatorCreate, name))).toEqual(['R1', '1R', 'a.b'])
    expect(names.filter((name) => !refuses(IouCreate, name))).toEqual(['R1'])
    expect(names.some((name) => refuses(undefined, name))).toBe(false)
  })
})

it('a port with a name of its own takes a number in GNS3, and none here', () => {
  const node = {
    ...{ node_type: 'machine-emulator', properties: { adapters: 3 }, first_port_name: null, port_segment_size: 0 },
    ...{ port_name_format: 'Ethernet{0}', custom_adapters: [{ adapter_number: 1, port_name: 'wan' }] },
  }
  const names = (countsAll: boolean) => portsOf(node, countsAll).map(({ name }) => name)
  expect(names(true)).toEqual(['Ethernet0', 'wan', 'Ethernet2'])
  expect(names(false)).toEqual(['Ethernet0', 'wan', 'Ethernet1'])
})

it('paths and addresses in texts have the words of GNS3', () => {
  expect(theirFile('path: project-files/pc/1/x is missing')).toBe('path: project-files/vpcs/1/x is missing')
  expect(theirFile('/data/project-files/machine-emulator/1')).toBe('/data/project-files/qemu/1')
  expect(theirUrl('http://h:1/v2/computes/pc/switch/images')).toBe('http://h:1/v2/computes/pc/ethernet_switch/images')
})
