import { deepEqual, equal } from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { Server, Socket } from 'node:net'
import { test } from 'node:test'
import { ConnectionLimiter } from './connection-limiter.ts'

/** A server whose connections are objects with an address only. */
function setUp(limits: { unauthenticated: number; authenticated: number; perUser: number }) {
  let nowMs = 0
  const limiter = new ConnectionLimiter(limits, () => nowMs)
  const server = new EventEmitter()
  limiter.limit(server as Server)
  let port = 0
  const closed: string[] = []
  const open = (name: string, remoteAddress: string) => {
    nowMs += 1_000
    const socket: EventEmitter & { destroyed: boolean } = Object.assign(new EventEmitter(), {
      ...{ remoteAddress, remotePort: ++port, destroyed: false },
      destroy() {
        socket.destroyed = true
        closed.push(name)
        socket.emit('close')
      },
    })
    server.emit('connection', socket)
    return socket as unknown as Socket
  }
  const back = (ms: number) => {
    nowMs -= ms
  }
  return { limiter, open, closed, back }
}

test('beyond the limit the oldest unauthenticated connection of the address with the most is closed', () => {
  const { open, closed, limiter } = setUp({ unauthenticated: 3, authenticated: 9, perUser: 9 })
  for (const name of ['b1', 'a1', 'a2', 'a3', 'a4']) open(name, name === 'b1' ? '10.0.0.2' : '10.0.0.1')
  deepEqual(closed, ['a1', 'a2'])
  deepEqual(limiter.size, { unauthenticated: 3, authenticated: 0 })
})

test('under many new connections the oldest keeps its place for a moment, and another network still gets one', () => {
  const { open, closed, back } = setUp({ unauthenticated: 2, authenticated: 9, perUser: 9 })
  open('a1', '10.0.0.1')
  back(990)
  open('a2', '10.0.0.1')
  back(990)
  open('a3', '10.0.0.1')
  back(990)
  open('b1', '10.0.0.2')
  deepEqual(closed, ['a3', 'a1'])
})

test('a user gets a limited number of connections; another is admitted when one of them is closed', () => {
  const { open, limiter } = setUp({ unauthenticated: 9, authenticated: 9, perUser: 2 })
  const sockets = ['1', '2', '3'].map(name => open(name, '10.0.0.1'))
  const [first, , third] = sockets as [Socket, Socket, Socket]
  deepEqual(
    sockets.map(socket => limiter.admit(socket, 'ada')),
    [true, true, false],
  )
  equal(limiter.admit(first, 'ada'), true)
  equal(limiter.admit(open('4', '10.0.0.1'), 'bob'), true)
  first.destroy()
  equal(limiter.admit(third, 'ada'), true)
  deepEqual(limiter.size, { unauthenticated: 0, authenticated: 3 })
})

test('when all users have too many, the one with the most loses its oldest to one with fewer', () => {
  const { open, limiter, closed } = setUp({ unauthenticated: 9, authenticated: 4, perUser: 3 })
  const admit = (user: string, name: string) => limiter.admit(open(name, '10.0.0.1'), user)
  deepEqual(
    ['a1', 'a2', 'a3', 'b1', 'b2', 'c1'].map(name => admit(name.slice(0, 1), name)),
    [true, true, true, true, true, true],
  )
  deepEqual(closed, ['a1', 'a2'])
  // b has two, a and c one each: no user has two more than c would have.
  equal(admit('c', 'c2'), false)
  deepEqual(limiter.size, { unauthenticated: 1, authenticated: 4 })
})

test('a released connection counts as unauthenticated, and its user may have another', () => {
  const { open, limiter, closed } = setUp({ unauthenticated: 1, authenticated: 1, perUser: 1 })
  const a = open('a', '10.0.0.1')
  equal(limiter.admit(a, 'ada'), true)
  limiter.release(a)
  limiter.release(a)
  deepEqual(limiter.size, { unauthenticated: 1, authenticated: 0 })
  equal(limiter.admit(open('c', '10.0.0.1'), 'ada'), true)
  deepEqual(closed, ['a'])
})
