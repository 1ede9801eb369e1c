import type { GuestShell } from './console.ts'

export interface PingResult {
  readonly received: number
  /** The time of each answer. */
  readonly ms: readonly number[]
}

export interface Transfer {
  /** What arrived. */
  readonly bytes: number
  /** From when the connection was there until all had arrived, by the clock of the receiver, which ticks every 10 ms. */
  readonly ms: number
}

const port = 5001
const record = 65_536

/** Some drivers see that their adapter is connected a second or two after they were started. */
export async function linkUp(shell: GuestShell, adapter = 0): Promise<void> {
  await shell.until(`[ "$(cat /sys/class/net/eth${adapter}/carrier 2>/dev/null)" = 1 ]`)
}

/** Five echo requests a second. */
export async function ping(shell: GuestShell, address: string, count: number): Promise<PingResult> {
  const { output } = await shell.attempt(`ping -i 0.2 -W 2 -c ${count} ${address}`, 30_000 + count * 1000)
  const ms = [...output.matchAll(/ time=([\d.]+) ms/g)].map(([, time]) => Number(time))
  return { received: ms.length, ms }
}

/** Sends so many MiB over TCP to another guest, at the address that the sender reaches it by. */
export async function transfer(
  from: GuestShell,
  to: GuestShell,
  address: string,
  megabytes: number,
): Promise<Transfer> {
  const receive = `read -r start rest </proc/uptime
records=$(dd of=/dev/null bs=${record} iflag=fullblock 2>&1)
read -r end rest </proc/uptime
echo $start $end $records`
  await to.run(`killall -q nc; nc -l -p ${port} -e sh -c '${receive}' &`)
  await to.until(`netstat -ltn | grep -q ':${port} '`)
  const count = (megabytes * 2 ** 20) / record
  const send = `dd if=/dev/zero bs=${record} count=${count} 2>/dev/null | nc -w 10 ${address} ${port}`
  const told = await from.run(send, 60_000 + megabytes * 2000)
  const [, start, end, whole, cut] = /^([\d.]+) ([\d.]+) (\d+)\+(\d+) records in/.exec(told) ?? []
  if (cut !== '0') throw new Error(`What the receiver counted is not what was sent: ${told}`)
  return { bytes: Number(whole) * record, ms: Math.round((Number(end) - Number(start)) * 1000) }
}
