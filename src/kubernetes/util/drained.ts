/** A response that may have to wait for its client. */
type Drainable = {
  readonly destroyed: boolean
  readonly closed: boolean
  on(event: 'drain' | 'close', listener: () => void): unknown
  off(event: 'drain' | 'close', listener: () => void): unknown
}

/** Resolves when more can be written, or when the response has ended. Call it after a write that returned false. */
export function drained(response: Drainable): Promise<void> {
  if (response.destroyed || response.closed) return Promise.resolve()
  return new Promise(resolve => {
    const done = () => {
      response.off('drain', done)
      response.off('close', done)
      resolve()
    }
    response.on('drain', done)
    response.on('close', done)
  })
}
