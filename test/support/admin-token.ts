/** The admin token of the Worker that the tests of handlers ask; services without credentials do not look at it. */
export const adminToken = 'the-admin-token-of-handlers'
