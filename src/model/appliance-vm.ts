import { type Static, Type } from '@sinclair/typebox'
import { oneLine } from '../lib/text/one-line.ts'
import { Host, Password, User } from './compute.ts'
import { closedSchema, maybes, nullable, objectSchema, oneOf, PortNumber } from './schema/fields.ts'

/** Engines of the appliance VM. */
const applianceEngines = ['libvirt', 'virtualbox', 'remote'] as const
export type ApplianceEngineName = (typeof applianceEngines)[number]

const address = Type.String({ ...Host, description: 'Address of the service in the VM; null: the engine supplies it' })

const settings = {
  enable: Type.Boolean({ description: 'Whether the VM is started and used as the compute `vm`' }),
  engine: oneOf(applianceEngines, {
    description: 'The engine of the VM; remote: a registered compute is used instead',
  }),
  vmname: Type.String({
    minLength: 1,
    maxLength: 255,
    pattern: oneLine,
    expects: 'the name of a VM, 1 to 255 characters in one line, or null',
    description: 'Name of the VM in its engine, or for remote of the compute; without a name nothing is started',
  }),
  when_exit: oneOf(['stop', 'suspend', 'keep'], {
    description: 'What happens to the VM when it is disabled or the service ends',
  }),
  headless: Type.Boolean({ description: 'Whether the VM runs without a window on the host' }),
  allocate_vcpus_ram: Type.Boolean({
    description: 'Whether `ram` and `vcpus` apply; false: the VM keeps its own definition',
  }),
  ram: Type.Integer({ minimum: 32, maximum: 4_194_304, description: 'Memory, MB' }),
  vcpus: Type.Integer({ minimum: 1, maximum: 512, description: 'Number of processors' }),
  address: Host,
  port: Type.Integer({ ...PortNumber, description: 'TCP port of the service in the VM' }),
  user: User,
}

export type ApplianceVm = Static<typeof ApplianceVm>
export const ApplianceVm = objectSchema(
  'ApplianceVm',
  'Settings of the appliance VM, a VM with a service that is the compute `vm`',
  { ...settings, vmname: nullable(settings.vmname), address: nullable(Host), user: nullable(User) },
)

export type ApplianceVmUpdate = Static<typeof ApplianceVmUpdate>
export const ApplianceVmUpdate = closedSchema(
  'ApplianceVmUpdate',
  'Changes to the settings; absent members stay unchanged. null removes vmname, address or user, and leaves other members. A password ' +
    'is removed with its user',
  maybes({ ...settings, address, password: Password }),
)

/** The stored settings, with the password. */
export type ApplianceVmRecord = Static<typeof ApplianceVmRecord>
export const ApplianceVmRecord = Type.Object({ ...ApplianceVm.properties, password: nullable(Password) })

export const defaultAppliance: ApplianceVmRecord = {
  enable: false,
  engine: 'libvirt',
  vmname: null,
  when_exit: 'stop',
  headless: false,
  allocate_vcpus_ram: true,
  ram: 2048,
  vcpus: 1,
  address: null,
  port: 3080,
  user: null,
  password: null,
}

export type ApplianceEngineShown = Static<typeof ApplianceEngineShown>
export const ApplianceEngineShown = objectSchema(
  'ApplianceEngine',
  'An engine of the appliance VM, and the settings that it supports',
  {
    engine_id: Type.String(),
    name: Type.String(),
    description: Type.String({ description: 'Description, as HTML' }),
    support_when_exit: Type.Boolean(),
    support_headless: Type.Boolean(),
    support_ram: Type.Boolean(),
  },
)

export const ApplianceCandidate = objectSchema('ApplianceCandidate', 'A VM that can be the appliance VM', {
  vmname: Type.String(),
})
