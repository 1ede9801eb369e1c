import { Type } from '@sinclair/typebox'
import type { ApplianceVmService as Appliance } from '../../../fleet/appliance-vm/appliance-vm.ts'
import { notFound } from '../../../lib/errors/api-error.ts'
import {
  ApplianceCandidate,
  ApplianceEngineShown,
  ApplianceVm,
  ApplianceVmUpdate,
} from '../../../model/appliance-vm.ts'
import { type Context, created, type Endpoint, endpoint, ok } from '../../../server/http/endpoint.ts'

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
    summary: 'Change the settings of the appliance VM, and start or stop it accordingly',
    description:
      'Answers when the VM is in the requested state. A started VM is the compute `vm`, whose `last_error` shows the progress. ' +
      'This can take a few minutes. Another change cancels one that is in progress.',
    body: ApplianceVmUpdate,
    viewSchema: ApplianceVm,
    current: async (_, context) => applianceOf(context).settings,
    replies: { 201: { description: 'The settings, now in effect', schema: ApplianceVm } },
    errors: {
      404: noneHere,
      409: 'The settings were saved, but the VM was not started or stopped; the message and the compute `vm` say why',
      507: 'The disk is full',
    },
    handle: async ({ body }, context) => created(await applianceOf(context).update(body)),
  }),
  endpoint({
    method: 'GET',
    path: `${base}/engines`,
    ...self,
    summary: 'List the engines that can run the appliance VM',
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
      409: 'The engine cannot be reached; without an enabled appliance VM the list is empty instead',
    },
    handle: async ({ params }, context) =>
      ok((await applianceOf(context).vms(params.engine)).map((vmname) => ({ vmname }))),
  }),
]

function applianceOf({ appliance }: Context): Appliance {
  if (appliance === undefined) throw notFound(noneHere)
  return appliance
}
