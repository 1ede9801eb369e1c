/** A random UUID. `crypto.randomUUID` is not there for a page that comes over plain HTTP from another host. */
export { v4 as randomId } from 'uuid'
