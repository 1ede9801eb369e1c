import { expect } from 'vitest'
import { requireContainers } from '../support/container-image.ts'
import { addImage, createPair, createProject, Shell } from '../support/container-lab.ts'
import { start } from '../support/lab.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

const times = 20

interface Seen {
  readonly path: string
  readonly counters: { readonly in_frames: number; readonly out_frames: number; readonly in_bytes: number }
}

testWith(await requireContainers())(
  'a link turns to the switch and back to the kernel under a flow, which loses no connection and no frame twice',
  async () => {
    const service = await TestService.start()
    await addImage(service)
    const project = await createProject(service)
    const [a, b] = await createPair(service, project)
    await start(service, a, b)
    const [sender, receiver] = [await Shell.open(service, a), await Shell.open(service, b)]
    const link = () => service.call<Seen>('GET', `${b}/adapters/0/ports/0/nio`)
    const change = (filters: object) => service.call('PUT', `${a}/adapters/0/ports/0/nio`, { filters })
    await expect.poll(link).toMatchObject({ path: 'kernel', link: 'ok' })
    await receiver.run('( (tail -f /dev/null | nc -l -p 5000 > /dev/null; echo over > /tmp/over) & )')
    await sender.run('( (yes 0123456789abcdef | nc 10.0.0.2 5000; echo over > /tmp/over) & )')
    await sender.run('( ping -i 0.01 10.0.0.2 > /tmp/pings & echo $! > /tmp/ping.pid )')
    /** Resolves when the flow has gone on. */
    const flows = async () => {
      const { in_bytes } = (await link()).counters
      await expect
        .poll(async () => (await link()).counters.in_bytes, { timeout: 60_000 })
        .toBeGreaterThan(in_bytes + 1e6)
    }
    for (let turn = 0; turn < times; turn++) {
      await change({ delay: [1 + (turn % 2)] })
      expect(await link()).toMatchObject({ path: 'relay' })
      await flows()
      await change({})
      await expect.poll(link, { timeout: 60_000 }).toMatchObject({ path: 'kernel' })
      await flows()
    }
    for (const shell of [sender, receiver]) expect(await shell.run('cat /tmp/over 2>&1')).toContain('No such file')
    await sender.run('kill -INT $(cat /tmp/ping.pid); sleep 0.2')
    const pings = await sender.run('tail -3 /tmp/pings; grep -c DUP /tmp/pings')
    expect(pings).toMatch(/[1-9]\d* packets received, \d+% packet loss/)
    expect(pings).not.toContain('duplicates')
    const ends = [a, b].map((node) => service.call<Seen>('GET', `${node}/adapters/0/ports/0/nio`))
    const [one, other] = (await Promise.all(ends)).map(({ counters }) => counters)
    expect(one?.out_frames).toBeGreaterThan(0)
    expect(other?.in_frames).toBeGreaterThan(0)
    await service.close()
  },
)
