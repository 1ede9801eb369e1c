import { execFileSync } from 'node:child_process'
import { mkdir, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { findProgram } from '../../../runtime/node/os/system/find-program.ts'
import { countingFull } from '../../node/drivers/qemu/boot-sectors.ts'
import { writeImage } from '../../node/drivers/qemu/machine-lab.ts'
import { median, ms, target } from '../medians.ts'
import { type Service, startService } from '../service.ts'
import type { Row } from '../table.ts'
import { timed } from '../times.ts'

const machines = 10
const rounds = 3
const bench = '/v2/projects/bench'

/** A snapshot of machines that run, whose memory is full of numbers, beside `dd` of the same bytes. */
export async function snapshots(): Promise<Row[]> {
  const what = `snapshot of ${machines} running machines of 128 MB`
  if (findProgram('qemu-system-x86_64') === undefined) return [[what, '-', 'QEMU is not installed']]
  const service = await startService('--machine-emulator-acceleration', 'tcg')
  try {
    await start(service)
    const [keeping, restoring, copying]: [number[], number[], number[]] = [[], [], []]
    let size = 0
    for (let round = 0; round < rounds; round++) {
      let kept = { snapshot_id: '', size: 0 }
      const input = { name: `round ${round}` }
      const keep = async () => {
        kept = (await service.call('POST', `${bench}/snapshots`, input)) as typeof kept
      }
      keeping.push(await timed(keep))
      size = kept.size
      const memory = await memoryFiles(join(service.data, 'projects'), kept.snapshot_id)
      const copy = join(service.data, 'copy')
      const copyAll = () => {
        for (const [index, file] of memory.entries()) dd(file, `${copy}-${index}`)
      }
      copying.push(await timed(copyAll))
      execFileSync(
        'rm',
        memory.map((_, index) => `${copy}-${index}`),
      )
      restoring.push(await timed(() => service.call('POST', `${bench}/snapshots/${kept.snapshot_id}/restore`)))
      await service.call('DELETE', `${bench}/snapshots/${kept.snapshot_id}`)
    }
    const [took, alone] = [median(keeping), median(copying)]
    const verdict = target(took < 3000 + 1.5 * alone, '3 s and 1.5 x dd')
    const text = `${Math.round(size / 2 ** 20)} MB, dd of them and sync ${ms(alone)}, restore ${ms(median(restoring))}, ${verdict}`
    return [[what, `${ms(took)} p50`, text]]
  } finally {
    await service.call('DELETE', bench)
    await service.close()
  }
}

async function start(service: Service): Promise<void> {
  const images = join(service.data, 'images/machine-emulator')
  await mkdir(images, { recursive: true })
  await writeImage(join(images, 'full.img'), countingFull)
  await service.call('POST', '/v2/projects', { name: 'Bench' })
  const properties = { platform: 'x86_64', ram: 128, adapters: 0, options: '-vga none', hda_disk_image: 'full.img' }
  for (let number = 1; number <= machines; number++) {
    const node = { name: `R${number}`, node_type: 'machine-emulator', console_type: 'telnet', properties }
    await service.call('POST', `${bench}/nodes`, node)
    await service.call('POST', `${bench}/nodes/R${number}/start`)
  }
  // The program says so when it has written to all of its memory.
  for (let number = 1; number <= machines; number++)
    await service.call('POST', `${bench}/nodes/R${number}/console/expect`, { send: 'x', expect: '[a-z]', within_s: 60 })
}

async function memoryFiles(projects: string, snapshotId: string): Promise<string[]> {
  const [project = ''] = await readdir(projects)
  const place = join(projects, project, '.patchbay/snapshots', snapshotId, 'project-files/machine-emulator')
  const files = (await readdir(place)).map((node) => join(place, node, 'memory.started'))
  for (const file of files) if ((await stat(file)).size < 100 * 2 ** 20) throw new Error(`${file} is not full`)
  return files
}

const dd = (from: string, to: string) =>
  execFileSync('dd', [`if=${from}`, `of=${to}`, 'bs=1M', 'conv=fsync'], { stdio: 'ignore' })
