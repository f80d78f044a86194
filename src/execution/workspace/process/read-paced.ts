import type { Readable } from 'node:stream'

/** How long the output of one program may be processed before others have a turn. */
const turnMs = 5
/** The pause after it, as a multiple of it: one program gets at most a third of the time. */
const pauseFactor = 2

/**
 * Passes what a program prints to `push`. While that takes long, the stream is paused: Node would read up to 32 chunks in a row, two megabytes of short
 * lines, before anything else has a turn. A full pipe blocks the program.
 * @returns shortens the pauses: the program has exited, and the rest is little.
 */
export function readPaced(stream: Readable, push: (chunk: Buffer) => void): () => void {
  let spentMs = 0
  let timer: NodeJS.Timeout | undefined
  let isDraining = false
  const resume = () => {
    timer = undefined
    spentMs = 0
    stream.resume()
  }
  stream.on('data', (chunk: Buffer) => {
    const startMs = performance.now()
    push(chunk)
    spentMs += performance.now() - startMs
    if (timer || spentMs < turnMs) return
    stream.pause()
    timer = setTimeout(resume, isDraining ? 0 : spentMs * pauseFactor)
  })
  return () => {
    isDraining = true
    if (!timer) return
    clearTimeout(timer)
    resume()
  }
}
