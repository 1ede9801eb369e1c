import { spawn } from 'node:child_process'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { isActive, isLocked, Misuse, machineOf, maxNics, Refusal, settleVm } from './machine.ts'
import { kinds, onOff, setProperty } from './modify.ts'
import { change, type MachineState, type Nic, read } from './state.ts'

export async function startVm(directory: string, args: readonly string[]): Promise<string> {
  const [wanted = '', option, type, ...rest] = args
  if (option !== undefined && (option !== '--type' || rest.length > 0)) throw new Misuse(`unknown option: ${option}`)
  if (option !== undefined && !['headless', 'gui', 'separate'].includes(type ?? '')) {
    throw new Refusal('E_INVALIDARG', `Invalid session type '${type}'`)
  }
  const { uuid, name } = change(directory, (state) => {
    const machine = machineOf(state, wanted)
    if (!isLocked(machine)) return machine
    throw new Refusal(
      'VBOX_E_INVALID_OBJECT_STATE',
      `The machine '${machine.name}' is already locked by a session (or being locked or unlocked)`,
    )
  })
  const pid = await launch(directory, uuid)
  if (typeof pid === 'string') {
    throw new Refusal(
      'NS_ERROR_FAILURE',
      `The virtual machine '${name}' has terminated unexpectedly during startup ${pid}`,
    )
  }
  change(directory, (state) => {
    const machine = machineOf(state, uuid)
    machine.state = 'running'
    machine.pid = pid
  })
  return `Waiting for VM "${wanted}" to power on...\nVM "${wanted}" has been successfully started.\n`
}

/** Its pid when it is up; when it has ended at once, how, and what it said. */
function launch(directory: string, uuid: string): Promise<number | string> {
  const program = join(read(directory).programs, 'vm.js')
  const child = spawn(process.execPath, [program, directory, uuid], {
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let said = ''
  child.stderr.on('data', (bytes: Buffer) => {
    said += bytes.toString('utf8')
  })
  return new Promise((resolve) => {
    child.stdout.once('data', () => {
      child.stdout.destroy()
      child.stderr.destroy()
      child.unref()
      resolve(child.pid ?? 'without a process')
    })
    child.once('close', (code, signal) => {
      const how = signal === null ? `with exit code ${code} (0x${(code ?? 0).toString(16)})` : `due to signal ${signal}`
      resolve(`${how}: ${said.trim()}`)
    })
  })
}

function order(directory: string, uuid: string, what: object): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = createConnection(join(directory, `${uuid}.ctl`))
    let answer = ''
    socket.once('connect', () => socket.write(`${JSON.stringify(what)}\n`))
    socket.on('data', (bytes) => {
      answer += bytes.toString('utf8')
    })
    socket.once('close', () => resolve(answer))
    socket.once('error', reject)
  })
}

type Settled = 'poweroff' | 'saved'

async function endVm(directory: string, { uuid, pid }: MachineState, state: Settled): Promise<void> {
  await order(directory, uuid, { op: 'end' }).catch(() => '')
  for (let tries = 0; tries < 200 && isAlive(pid); tries++) await pause(5)
  change(directory, (all) => settleVm(all, machineOf(all, uuid), state))
}

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

const invalidState = (machine: MachineState) =>
  new Refusal('VBOX_E_INVALID_VM_STATE', `Invalid machine state: ${machine.state}`)

type Command = (directory: string, machine: MachineState) => Promise<void>

const commands: Readonly<Record<string, Command>> = {
  poweroff: (directory, machine) => endVm(directory, machine, 'poweroff'),
  async savestate(directory, machine) {
    if (machine.state === 'gurumeditation') throw invalidState(machine)
    await endVm(directory, machine, 'saved')
  },
  async acpipowerbutton(directory, machine) {
    if (machine.state !== 'running') throw invalidState(machine)
    await order(directory, machine.uuid, { op: 'button' })
  },
  async pause(directory, machine) {
    if (machine.state !== 'running') throw invalidState(machine)
    await order(directory, machine.uuid, { op: 'pause', nics: machine.nics })
    settle(directory, machine, 'paused')
  },
  async resume(directory, machine) {
    if (machine.state !== 'paused') {
      const message = `Cannot resume the machine as it is not paused (machine state: ${machine.state})`
      throw new Refusal('VBOX_E_INVALID_VM_STATE', message)
    }
    await order(directory, machine.uuid, { op: 'resume', nics: machine.nics })
    settle(directory, machine, 'running')
  },
  async reset(directory, machine) {
    if (machine.state === 'paused') throw invalidState(machine)
    await order(directory, machine.uuid, { op: 'reset' })
  },
}

function settle(directory: string, { uuid }: MachineState, state: MachineState['state']): void {
  change(directory, (all) => {
    machineOf(all, uuid).state = state
  })
}

export async function controlVm(directory: string, args: readonly string[]): Promise<string> {
  const [wanted, word, ...values] = args
  if (wanted === undefined || word === undefined) throw new Misuse('Not enough parameters.')
  const state = read(directory)
  const machine = machineOf(state, wanted)
  if (!isActive(machine)) throw new Misuse(`Machine '${wanted}' is not currently running.`)
  const command = commands[word]
  if (command !== undefined) {
    if (values.length > 0) throw new Misuse(`Invalid parameter '${values[0]}'`)
    await command(directory, machine)
    return ''
  }
  const [, what = '', digits] = /^(nic|nicproperty|setlinkstate|natpf)(\d+)$/.exec(word) ?? []
  const number = Number(digits)
  if (digits === undefined || number > maxNics(state, machine)) throw new Misuse(`Invalid parameter '${word}'`)
  const nics = change(directory, (all) => {
    const { nics: changing } = machineOf(all, wanted)
    alterNic(changing[number - 1], what, values)
    return changing
  })
  await order(directory, machine.uuid, { op: 'nics', nics: machine.state === 'running' ? nics : [] })
  return ''
}

function alterNic(nic: Nic | undefined, what: string, [value, target]: readonly string[]): void {
  if (nic === undefined || value === undefined) throw new Misuse('Missing argument.')
  // As VirtualBox: it says so, and that is all.
  if (!nic.enabled) return void process.stderr.write('VBoxManage: error: The NIC is currently disabled\n')
  if (what === 'natpf') return forward(nic, value, target)
  if (what === 'setlinkstate') nic.cable = onOff(value)
  if (what === 'nicproperty') setProperty(nic, value)
  if (what !== 'nic') return
  if (!kinds.includes(value) || value === 'none') throw new Misuse(`Invalid type '${value}'`)
  if (value === 'generic' && target === undefined) throw new Misuse("Missing argument to 'generic'")
  nic.attachment = value
  if (value === 'generic') nic.driver = target ?? ''
}

/** `{name},{protocol},{host},{port},{guest},{port}`, or `delete` and a name. */
function forward(nic: Nic, rule: string, name: string | undefined): void {
  if (nic.attachment !== 'nat') throw new Refusal('E_INVALIDARG', 'The adapter is not attached to NAT')
  if (rule === 'delete') {
    if (nic.forwardings[name ?? ''] === undefined) throw new Refusal('E_INVALIDARG', `No rule '${name}'`)
    delete nic.forwardings[name ?? '']
    return
  }
  const [, called, where] = /^([^,]+),((?:tcp|udp),[\d.]*,\d+,[\d.]*,\d+)$/.exec(rule) ?? []
  if (called === undefined || where === undefined) throw new Misuse(`Invalid port forwarding rule '${rule}'`)
  if (nic.forwardings[called] !== undefined) throw new Refusal('E_INVALIDARG', 'A NAT rule of this name already exists')
  nic.forwardings[called] = where
}
