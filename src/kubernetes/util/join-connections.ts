import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

/** One end of a connection, and what was read from it already. */
export type ConnectionEnd = { readonly socket: Duplex; readonly head: Buffer }

/** How long a connection without data stays open when one direction has ended. */
const defaultLingerMs = 30_000

/**
 * Joins two connections: what one sends, the other gets, no faster than it reads. The end of one direction leaves the other open, until it has had no data
 * for `lingerMs` (default 30,000). When one connection closes, the other closes too, after what was sent to it.
 */
export function joinConnections(one: ConnectionEnd, other: ConnectionEnd, lingerMs = defaultLingerMs): void {
  pass(one, other.socket, lingerMs)
  pass(other, one.socket, lingerMs)
}

function pass({ socket, head }: ConnectionEnd, target: Duplex, lingerMs: number): void {
  // Otherwise the end of what this one sends would also end what it gets.
  socket.allowHalfOpen = true
  if (head.length > 0) target.write(head)
  socket.on('error', () => socket.destroy())
  socket.once('end', () => {
    // An end that has vanished looks like one that only has nothing more to send.
    for (const each of [socket, target]) (each as Partial<Socket>).setTimeout?.(lingerMs, () => each.destroy())
  })
  socket.once('close', () => {
    if (target.destroyed) return
    if (!socket.readableEnded || socket.errored) target.destroy()
    else target.end(() => target.destroy())
  })
  socket.pipe(target)
  if (socket.destroyed) target.destroy()
}
