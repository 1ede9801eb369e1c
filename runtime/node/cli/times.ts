/** A time for people, in their time zone: `2026-11-23 12:05:09`. */
export function timeText(time: number | string): string {
  const date = new Date(typeof time === 'number' ? time * 1000 : time)
  const two = (number: number) => String(number).padStart(2, '0')
  const day = [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())].join('-')
  return `${day} ${[date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(':')}`
}
