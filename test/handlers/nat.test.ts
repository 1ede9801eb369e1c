import { expect, test } from 'vitest'
import { body, newProject, post, put, send } from '../support/api.ts'

const nats = (project: { v2: string }) => `${project.v2}/nat/nodes`
const fault = async (answer: Promise<Response>) => {
  const { status, message } = await body<{ status: number; message: string }>(answer)
  return [status, message]
}

test('a nat is created stopped, without a console, with a network of its own', async () => {
  const project = await newProject()
  const node = await body<Record<string, unknown>>(post(nats(project), { name: 'inet' }))
  expect(node).toEqual({
    node_id: expect.any(String),
    project_id: project.id,
    name: 'inet',
    node_directory: expect.stringContaining(`nat/${node.node_id}`),
    ...{ status: 'stopped', status_reason: null, command_line: '' },
    ...{ console: null, console_host: null, console_type: 'none' },
    port_count: 1,
    subnet: '192.168.122.0/24',
    ipv6_prefix: expect.stringMatching(/^fd[0-9a-f]{2}:[0-9a-f]{4}:[0-9a-f]{4}::\/64$/),
    ...{ port_forwards: [], guests: [], management: false },
  })
  const other = await body<Record<string, unknown>>(post(nats(project), { name: 'other' }))
  expect(other.ipv6_prefix).not.toBe(node.ipv6_prefix)
})

test('its settings can be changed, and without IPv6 it has none', async () => {
  const project = await newProject()
  const { node_id } = await body<{ node_id: string }>(post(nats(project), { name: 'inet', ipv6_prefix: '' }))
  const forward = { protocol: 'udp', host_port: 40123, guest_port: 53, guest_address: '10.1.2.30' }
  const changes = { subnet: '10.1.2.0/25', port_count: 3, port_forwards: [forward] }
  const at = `${nats(project)}/${node_id}`
  expect(await body(put(at, changes))).toMatchObject({ ...changes, ipv6_prefix: '' })
  expect((await send(`${at}/adapters/0/ports/2/nio`)).status).toBe(404)
  expect((await fault(send(`${at}/adapters/0/ports/3/nio`)))[1]).toContain('port')
})

test.for([
  [{ subnet: '10.1.2.0' }, 'subnet: expected an IPv4 network'],
  [{ subnet: '10.1.2.1/24' }, 'subnet: 10.1.2.1/24 is not a network address with a prefix from /8 to /28'],
  [{ subnet: '300.1.2.0/24' }, 'subnet: 300.1.2.0/24 is not'],
  [{ subnet: '10.1.2.0/30' }, 'subnet: 10.1.2.0/30 is not'],
  [{ subnet: '127.0.0.0/8' }, 'subnet: 127.0.0.0/8 is not'],
  [{ ipv6_prefix: '2001:db8::/64' }, 'ipv6_prefix: expected a unique local IPv6 network'],
  [{ ipv6_prefix: 'fd00::1::/64' }, 'ipv6_prefix: fd00::1::/64 is not an IPv6 network'],
  [{ port_count: 257 }, 'port_count: '],
  [{ port_forwards: [{ protocol: 'icmp', host_port: 1, guest_port: 1 }] }, 'port_forwards'],
  [{ port_forwards: [{ host_address: 'localhost' }] }, 'host_address: localhost is not an address'],
  [{ port_forwards: [{ guest_address: '10.0.0.1' }] }, 'guest_address: 10.0.0.1 is not in the network of the guests'],
  [{ port_forwards: [{ host_address: '::1' }] }, 'guest_address: required with an IPv6 host_address'],
] as const)('%j is refused: %s', async ([settings, message]) => {
  const project = await newProject()
  const { port_forwards: forwards } = settings as { port_forwards?: readonly object[] }
  const whole = forwards?.map((it) => ({ protocol: 'tcp', host_port: 40124, guest_port: 22, ...it }))
  const input = { name: 'inet', ...settings, ...(whole !== undefined && { port_forwards: whole }) }
  expect(await fault(post(nats(project), input))).toEqual([400, expect.stringContaining(message)])
})

test('a port of the host leads to one nat', async () => {
  const project = await newProject()
  const port_forwards = [{ protocol: 'tcp', host_port: 40125, guest_port: 22 }]
  const { node_id } = await body<{ node_id: string }>(post(nats(project), { name: 'first', port_forwards }))
  const refused = [409, 'port_forwards/0/host_port: tcp port 40125 is forwarded by first']
  expect(await fault(post(nats(project), { name: 'second', port_forwards }))).toEqual(refused)
  const everywhere = [{ ...port_forwards[0], host_address: '0.0.0.0' }]
  expect((await fault(post(nats(project), { name: 'second', port_forwards: everywhere })))[0]).toBe(409)
  const other = [{ ...port_forwards[0], protocol: 'udp' }]
  expect((await post(nats(project), { name: 'second', port_forwards: other })).status).toBe(201)
  expect((await put(`${nats(project)}/${node_id}`, { port_forwards: [] })).status).toBe(200)
  expect((await post(nats(project), { name: 'third', port_forwards })).status).toBe(201)
})
