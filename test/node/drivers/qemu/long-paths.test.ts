import { expect, test } from 'vitest'
import { requireProgram } from '../../../support/require.ts'
import { describeWith } from '../../../support/test-with.ts'
import { sharedAgent } from './machine-agent.ts'
import { pidsOf } from './machine-lab.ts'
import { qemuName } from './qemu-process.ts'

describeWith(requireProgram(qemuName))('a machine', () => {
  const newLab = sharedAgent({}, 'x'.repeat(200))

  test('runs where the path of the data directory is longer than that of a socket can be', async () => {
    const lab = await newLab()
    const ref = await lab.machine()
    expect(await lab.agent.nodes.start(ref)).toMatchObject({ status: 'started' })
    expect(await lab.agent.nodes.suspend(ref)).toMatchObject({ status: 'suspended' })
    await lab.agent.nodes.stop(ref)
    expect(pidsOf(ref.node_id)).toEqual([])
  })
})
