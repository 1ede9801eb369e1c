import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { createPc, openConsole, start, status } from '../support/lab.ts'
import { hangMs } from '../support/limits.ts'
import { portRanges } from '../support/ports.ts'
import { requireProgram } from '../support/require.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

const vpcs = requireProgram('vpcs')

testWith(vpcs)('a program that says its port is taken is started again with another one', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'patchbay-vpcs-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  const [program, ports] = [join(directory, 'vpcs'), join(directory, 'ports')]
  // As VPCS does it: it says so and goes on, deaf.
  await writeFile(
    program,
    `#!/bin/sh
test "$1" = -v && { echo 'Welcome to Virtual PC Simulator, version 0.5b2'; exit 1; }
echo "$6" >>${ports}
test "$(wc -l <${ports})" -gt 2 && exec vpcs "$@"
echo 'Welcome to Virtual PC Simulator'
sleep 0.2
echo "Open port $6 error [Address already in use]"
exec sleep 60
`,
  )
  await chmod(program, 0o755)
  const range = portRanges()
  const third = String((range.udp_port_range?.[0] ?? 0) + 2)
  const service = await TestService.start({ ...range, 'pc.engine': 'vpcs', 'pc.vpcs_path': program })
  const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'lab' })
  const project = `/v2/compute/projects/${project_id}`
  const pc = await createPc(service, project, 1)
  await start(service, pc)
  await expect
    .poll(
      async () => (await service.call<{ command_line: string; status: string }>('GET', pc)).command_line.split(' ')[6],
      { timeout: hangMs },
    )
    .toBe(third)
  await expect.poll(() => status(service, pc)).toBe('started')
  const console = await openConsole(service, pc)
  console.type('show ip\r')
  await console.expect('10.0.0.1/24')
})
