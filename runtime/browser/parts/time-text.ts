/** A point in time in a text of the service. */
export const timePattern = /\d{4}-\d\d-\d\dT[\d:.]+Z/g

/** A point in time for people, in their own time zone. `time`: RFC 3339, or ms since 1970. */
export function timeText(time: string | number): string {
  // By toLocaleString each text would need a format of its own, for the time of a hundred texts.
  format ??= new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' })
  return format.format(new Date(time))
}
let format: Intl.DateTimeFormat | undefined
