import { connect, type Socket } from 'node:net'

/**
 * A program of its own: sends that many wrong log-ins a second, all with the same name and another password each, over connections
 * that are kept. `node wrong-logins.ts PORT PER_SECOND FROM`; tells every second, as a line of JSON, what was sent and answered.
 */
const [port, perSecond, from = '127.0.0.2'] = [Number(process.argv[2]), Number(process.argv[3]), process.argv[4]]
const connections = 64
/** Most requests of a connection without an answer: who guesses wants to know. */
const maxUnanswered = 8
/** Between two lots of requests, ms. */
const tickMs = 2
const authorizations = Array.from({ length: 50_000 }, (_, index) => btoa(`anna:wrong password ${index}`))

let sent = 0
const answers = new Map<string, number>()
const sockets: (Guesser | undefined)[] = []

interface Guesser {
  readonly socket: Socket
  unanswered: number
}

function open(place: number): void {
  const socket = connect({ port, host: '127.0.0.1', localAddress: from })
  socket.setNoDelay(true)
  const guesser: Guesser = { socket, unanswered: 0 }
  socket.on('connect', () => {
    sockets[place] = guesser
  })
  socket.on('data', (data) => {
    for (const [, status = ''] of data.toString('latin1').matchAll(/HTTP\/1\.1 (\d{3})/g)) {
      answers.set(status, (answers.get(status) ?? 0) + 1)
      guesser.unanswered -= 1
    }
  })
  socket.on('error', () => {})
  // A 401 ends its connection, and many refusals do.
  socket.on('close', () => {
    sockets[place] = undefined
    open(place)
  })
}
for (let place = 0; place < connections; place++) open(place)

const began = performance.now()
setInterval(() => {
  const due = Math.floor(((performance.now() - began) * perSecond) / 1000)
  for (let tries = 0; sent < due && tries < 2000; tries++) {
    const guesser = sockets[(sent + tries) % connections]
    if (guesser === undefined || guesser.unanswered >= maxUnanswered) continue
    const authorization = authorizations[sent % authorizations.length]
    guesser.unanswered += 1
    guesser.socket.write(
      `GET /v2/compute/version HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Basic ${authorization}\r\n\r\n`,
    )
    sent += 1
  }
}, tickMs)

setInterval(() => process.stdout.write(`${JSON.stringify({ sent, ...Object.fromEntries(answers) })}\n`), 1000)
process.stdin.resume().on('end', () => process.exit())
