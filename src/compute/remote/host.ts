import { Type } from '@sinclair/typebox'
import type { HostFacts } from '../../host-agent.ts'
import {
  Capabilities,
  capabilitiesPath,
  Diagnosis,
  HostLoad,
  NetworkInterface,
  Ports,
  Reloaded,
  Version,
} from '../../model/host.ts'
import { namedAction } from '../../model/kinds/kind.ts'
import { kindOf } from '../../model/kinds/node.ts'
import { MetricFamily } from '../../model/metrics.ts'
import { runAction } from './actions.ts'
import type { Connection } from './connection.ts'

const interfaces = Type.Array(NetworkInterface)
const metrics = Type.Array(MetricFamily)

/** Facts about the host of a compute. */
export const remoteHost = (connection: Connection): HostFacts => ({
  version: () => connection.json(Version, { method: 'GET', path: '/v2/compute/version' }),
  // Their kinds may have to look for their programs first.
  capabilities: () =>
    connection.json(Capabilities, { method: 'GET', path: `${capabilitiesPath}?view=full`, pace: 'work' }),
  interfaces: () => connection.json(interfaces, { method: 'GET', path: '/v2/compute/network/interfaces' }),
  ports: () => connection.json(Ports, { method: 'GET', path: '/v2/compute/network/ports' }),
  load: () => connection.json(HostLoad, { method: 'GET', path: '/v2/compute/load' }),
  metrics: () => connection.json(metrics, { method: 'GET', path: '/v2/compute/metrics' }),
  doctor: (signal) =>
    connection.json(Diagnosis, {
      ...{ method: 'GET', path: '/v2/compute/doctor', pace: 'work' },
      ...(signal !== undefined && { signal }),
    }),
  reloadConfig: () => connection.json(Reloaded, { method: 'POST', path: '/v2/compute/config/reload' }),
  action: (kind, name, input, signal) =>
    runAction(connection, namedAction(kindOf(kind).computeActions, name), {
      ...{ base: `/v2/compute/${kind}`, input, signal },
    }),
})
