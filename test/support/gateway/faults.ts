import type { NetworkProxy } from '../proxy.ts'
import type { GatewayFixture } from './gateway-fixture.ts'

/** How long a partition is away at most. */
const longestMs = 1_500
/** How far a clock is wrong. */
const skewMs = 30_000

const pause = (ms: number) => new Promise<void>(resolve => setTimeout(resolve, ms))

/** Faults of a partition that is a process, by name. Each ends with the partition as it was, and some time in which it serves. `proxy` is before it. */
export function makeFaults(
  fixture: GatewayFixture,
  partition: string,
  proxy: NetworkProxy,
  random: () => number,
): Record<string, () => Promise<void>> {
  const someTime = () => pause(200 + random() * (longestMs - 200))
  const restart = async (skew: number) => {
    const process = fixture.processOf(partition)
    await process.kill()
    await fixture.startPartition(partition, process.port, skew)
    await someTime()
  }
  return {
    async killed() {
      const process = fixture.processOf(partition)
      await process.kill()
      await someTime()
      await fixture.startPartition(partition, process.port)
      await someTime()
    },
    async paused() {
      const process = fixture.processOf(partition)
      process.pause()
      await someTime()
      process.resume()
      await someTime()
    },
    async cut() {
      proxy.cut()
      await someTime()
      proxy.restore()
      await someTime()
    },
    // First: a clock that was ahead has taken the others along, and with it the two would differ by more than is accepted.
    async behind() {
      await restart(-skewMs)
      await restart(0)
    },
    async ahead() {
      await restart(skewMs)
      await restart(0)
    },
  }
}
