const loopbackHosts = /^(localhost|127(\.\d{1,3}){3}|::1|\[::1\])$/

/** Whether a configured host is this machine alone: other names may lead anywhere, also such as `127.example`. */
export const isLoopbackHost = (host: string): boolean => loopbackHosts.test(host)
