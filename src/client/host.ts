import { Type } from '@sinclair/typebox'
import type { HostFacts } from '../host-agent.ts'
import { Capabilities, Diagnosis, Load, NetworkInterface, Ports, Reloaded, Version } from '../model/host.ts'
import { MetricFamily } from '../model/metrics.ts'
import type { Connection } from './connection.ts'

const interfaces = Type.Array(NetworkInterface)
const families = Type.Array(MetricFamily)

export const remoteHost = (connection: Connection): Omit<HostFacts, 'action'> => ({
  version: () => connection.json(Version, { method: 'GET', path: '/v2/compute/version' }),
  capabilities: () => connection.json(Capabilities, { method: 'GET', path: '/v2/compute/capabilities?view=full' }),
  interfaces: () => connection.json(interfaces, { method: 'GET', path: '/v2/compute/network/interfaces' }),
  ports: () => connection.json(Ports, { method: 'GET', path: '/v2/compute/network/ports' }),
  load: () => connection.json(Load, { method: 'GET', path: '/v2/compute/load' }),
  metrics: () => connection.json(families, { method: 'GET', path: '/v2/compute/metrics' }),
  doctor: (signal) =>
    connection.json(Diagnosis, {
      method: 'GET',
      path: '/v2/compute/doctor',
      pace: 'work',
      ...(signal !== undefined && { signal }),
    }),
  reloadConfig: () => connection.json(Reloaded, { method: 'POST', path: '/v2/compute/config/reload' }),
})
