import { type Static, Type } from '@sinclair/typebox'
import { closedSchema, maybe, nullable, objectSchema, oneOf, PortNumber } from '../schema/fields.ts'
import { Host, Password, User } from './compute.ts'

/** What the appliance VM can be run by. */
export const applianceEngines = ['libvirt', 'virtualbox', 'remote'] as const
export type ApplianceEngineName = (typeof applianceEngines)[number]

const Engine = oneOf(applianceEngines, {
  description: 'What runs the VM; remote: a compute that is registered takes its place',
})
const VmName = Type.String({
  minLength: 1,
  maxLength: 255,
  pattern: '^[^\\u0000-\\u001f\\u007f]*$',
  expects: 'the name of a VM, 1 to 255 characters in one line, or null',
  description: 'Name of the VM in its engine, of the compute for remote; without one nothing is started',
})
const enable = Type.Boolean({ description: 'Whether the VM is started and used as the compute `vm`' })
const whenExit = oneOf(['stop', 'suspend', 'keep'], {
  description: 'What is done with the VM when it is not used any more, or the service ends',
})
const headless = Type.Boolean({ description: 'Whether the VM has no window on the screen of the host' })
const ram = Type.Integer({ minimum: 32, maximum: 4_194_304, description: 'Memory, MB' })
const vcpus = Type.Integer({ minimum: 1, maximum: 512, description: 'Number of processors' })
const allocate = Type.Boolean({ description: 'Whether `ram` and `vcpus` count; false: as the VM is defined' })
const port = Type.Integer({ ...PortNumber, description: 'TCP port of the service in the VM' })

/** The settings as they are shown: everything but the password. */
export type ApplianceVm = Static<typeof ApplianceVm>
export const ApplianceVm = objectSchema(
  'ApplianceVm',
  'Settings of the appliance VM, a VM with a service that is the compute `vm`',
  {
    enable,
    engine: Engine,
    vmname: nullable(VmName),
    when_exit: whenExit,
    headless,
    allocate_vcpus_ram: allocate,
    ram,
    vcpus,
    address: nullable(Host),
    port,
    user: nullable(User),
  },
)

export type ApplianceVmUpdate = Static<typeof ApplianceVmUpdate>
export const ApplianceVmUpdate = closedSchema(
  'ApplianceVmUpdate',
  'Changes of the settings; what is absent stays. null stays, too, but takes away vmname, address and user. A password ' +
    'goes with its user',
  {
    enable: maybe(enable),
    engine: maybe(Engine),
    vmname: maybe(VmName),
    when_exit: maybe(whenExit),
    headless: maybe(headless),
    allocate_vcpus_ram: maybe(allocate),
    ram: maybe(ram),
    vcpus: maybe(vcpus),
    address: Type.Optional(
      nullable(
        Type.String({
          ...Host,
          description: 'Where the service in the VM is; null: its engine is asked for addresses',
        }),
      ),
    ),
    port: maybe(port),
    user: maybe(User),
    password: maybe(Password),
  },
)

/** The settings as they are kept, the secret included. */
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

/** An engine, and what of the settings counts for it. */
export type ApplianceEngineShown = Static<typeof ApplianceEngineShown>
export const ApplianceEngineShown = objectSchema(
  'ApplianceEngine',
  'What can run the appliance VM, and what of its settings counts then',
  {
    engine_id: Type.String(),
    name: Type.String(),
    description: Type.String({ description: 'What it is, as HTML' }),
    support_when_exit: Type.Boolean(),
    support_headless: Type.Boolean(),
    support_ram: Type.Boolean(),
  },
)

export const ApplianceCandidate = objectSchema('ApplianceCandidate', 'A VM that can be the appliance VM', {
  vmname: Type.String(),
})
