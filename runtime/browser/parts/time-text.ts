/** A point in time in a text of the service. */
export const timePattern = /\d{4}-\d\d-\d\dT[\d:.]+Z/g

/** A point in time for people, in their own time zone. `time`: RFC 3339, or ms since 1970. */
export const timeText = (time: string | number): string =>
  new Date(time).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' })
