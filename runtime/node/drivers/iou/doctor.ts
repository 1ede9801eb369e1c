import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { homedir, hostname } from 'node:os'
import { join } from 'node:path'
import { ApiError } from '../../../../src/lib/errors/api-error.ts'
import type { DoctorCheck } from '../../../../src/model/host.ts'
import { iou } from '../../../../src/model/kinds/iou.ts'
import { begins } from '../../engine/storage/file-head.ts'
import { ok, preventing, warning } from '../../os/programs/checks.ts'
import { runProgram } from '../../os/programs/start.ts'
import { elfHeader } from './elf.ts'
import { isImageName } from './image-name.ts'
import type { IouSettings } from './iou.ts'
import { hostnameWarning, licenceName, requireLicence } from './licence.ts'

/** The loader of 32-bit programs, as images name it. */
const loader = '/lib/ld-linux.so.2'
const runMs = 5000

/** Where the checks look; tests have other places. */
interface Places {
  readonly loader: string
  readonly home: string
  readonly hostname: string
}

/** Checks what IOU images need of a host, as far as that can be told without one. `images`: directories of images. */
export async function iouChecks(
  settings: IouSettings,
  images: readonly string[],
  signal?: AbortSignal,
  places: Places = { loader, home: homedir(), hostname: hostname() },
): Promise<readonly DoctorCheck[]> {
  if (process.arch !== 'x64' && process.arch !== 'ia32') {
    const found = `its images are programs for x86 processors, and this machine has ${process.arch}; for iou nodes`
    return [preventing(warning('IOU', found, 'run iou nodes on a compute with an x86 processor'), iou.name)]
  }
  return Promise.all([programCheck(places, images, signal), licenceCheck(settings, places)])
}

/** Whether 32-bit programs run: all images but the newest ones are such programs. */
async function programCheck(places: Places, images: readonly string[], signal?: AbortSignal): Promise<DoctorCheck> {
  const check = await loaderCheck(places.loader, signal)
  return check.status === 'ok' || (await has64BitImage(images)) ? check : preventing(check, iou.name)
}

async function loaderCheck(path: string, signal?: AbortSignal): Promise<DoctorCheck> {
  const use = 'for iou nodes with 32-bit images'
  if (!existsSync(path))
    return warning('IOU', `no loader of 32-bit programs, ${path}; ${use}`, 'sudo apt-get install libc6-i386')
  // It is a 32-bit program itself, and says something to any option.
  const { stdout, stderr } = await runProgram(path, ['--version'], {
    ms: runMs,
    set: { LC_ALL: 'C' },
    ...(signal !== undefined && { signal }),
  })
  if (/\bld\.so\b|shared (object|librar)/.test(`${stdout}\n${stderr}`)) return ok('IOU', '32-bit programs run')
  const fix = 'a kernel with CONFIG_IA32_EMULATION; some virtual machines, such as PVM guests, have none'
  return warning('IOU', `the kernel runs no 32-bit programs; ${use}`, fix)
}

async function has64BitImage(directories: readonly string[]): Promise<boolean> {
  for (const directory of directories) {
    const names = await readdir(directory).catch(() => [])
    for (const name of names.filter(isImageName))
      if (await begins(join(directory, name), (head) => elfHeader(head)?.bits === 64)) return true
  }
  return false
}

/** Whether there is a licence for this host. A node may have one of its own, so that a missing one prevents nothing. */
async function licenceCheck({ iourc_path, license_check }: IouSettings, places: Places): Promise<DoctorCheck> {
  const name = 'IOU licence'
  const configured = process.env.IOURC || iourc_path
  const path = configured || join(places.home, `.${licenceName}`)
  const put = 'put it into ~/.iourc, or set iou.iourc_path'
  if (!existsSync(path)) {
    const found = configured ? `${path} does not exist` : 'not found'
    return warning(name, `${found}; for iou nodes that have none of their own`, put)
  }
  try {
    if (license_check) await requireLicence(path, places.hostname)
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return warning(name, error.message, `${path} needs [license], and below it: ${places.hostname} = KEY;`)
  }
  const long = hostnameWarning(places.hostname)
  if (long !== undefined) return warning(name, long, 'sudo hostnamectl set-hostname NAME, and a licence for that name')
  return ok(name, path)
}
