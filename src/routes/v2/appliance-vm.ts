import { Type } from '@sinclair/typebox'
import { notFound } from '../../errors/api-error.ts'
import type { ApplianceVmService as Appliance } from '../../fleet/appliance-vm.ts'
import { type Context, created, type Endpoint, endpoint, ok } from '../../http/endpoint.ts'
import { ApplianceCandidate, ApplianceEngineShown, ApplianceVm, ApplianceVmUpdate } from '../../model/appliance-vm.ts'

const base = '/v2/appliancevm'
const self = { owner: 'self', tag: 'v2 appliance VM' } as const
const admin = { ...self, role: 'admin' } as const
const noneHere = 'This service has no appliance VM'

export const applianceVmEndpoints: readonly Endpoint[] = [
  endpoint({
    method: 'GET',
    path: base,
    ...self,
    summary: 'Read the settings of the appliance VM',
    replies: { 200: { description: 'The settings', schema: ApplianceVm } },
    errors: { 404: noneHere },
    handle: (_, context) => ok(applianceOf(context).settings),
  }),
  endpoint({
    method: 'PUT',
    path: base,
    ...admin,
    summary: 'Change the settings of the appliance VM, and start or end it as they say',
    description:
      'Answers when the VM is as it was asked for: started, it is the compute `vm`, whose `last_error` tells of the progress. ' +
      'That takes up to some minutes. A further change gives up what is under way.',
    body: ApplianceVmUpdate,
    takesBack: ApplianceVm,
    current: async (_, context) => applianceOf(context).settings,
    replies: { 201: { description: 'The settings, in force', schema: ApplianceVm } },
    errors: {
      404: noneHere,
      409: 'The settings were saved, and the VM was not started or ended; the message says why, and so does the compute `vm`',
      507: 'The disk is full',
    },
    handle: async ({ body }, context) => created(await applianceOf(context).update(body)),
  }),
  endpoint({
    method: 'GET',
    path: `${base}/engines`,
    ...self,
    summary: 'List what can run the appliance VM',
    replies: { 200: { description: 'The engines', schema: Type.Array(ApplianceEngineShown) } },
    errors: { 404: noneHere },
    handle: (_, context) => ok(applianceOf(context).engines()),
  }),
  endpoint({
    method: 'GET',
    path: `${base}/engines/{engine}/vms`,
    ...self,
    summary: 'List the VMs of an engine',
    params: Type.Object({ engine: Type.String({ minLength: 1, maxLength: 100, description: 'Id of the engine' }) }),
    replies: { 200: { description: 'The VMs', schema: Type.Array(ApplianceCandidate) } },
    errors: {
      404: 'There is no such engine',
      409: 'The engine cannot be reached; without an appliance VM that is enabled the list is empty then',
    },
    handle: async ({ params }, context) =>
      ok((await applianceOf(context).vms(params.engine)).map((vmname) => ({ vmname }))),
  }),
]

function applianceOf({ appliance }: Context): Appliance {
  if (appliance === undefined) throw notFound(noneHere)
  return appliance
}
