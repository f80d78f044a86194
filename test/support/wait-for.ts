import { setTimeout as sleep } from 'node:timers/promises'

/** Asks again every 100 ms until `probe` gives something true; fails after `timeoutMs`, saying what was waited for. */
export async function waitFor<T>(
  what: string,
  timeoutMs: number,
  probe: () => T | undefined | false | Promise<T | undefined | false>,
): Promise<T> {
  const deadline = Date.now() + timeoutMs
  for (;;) {
    const result = await probe()
    if (result) return result
    if (Date.now() > deadline) throw new Error(`waited ${timeoutMs} ms for ${what}`)
    await sleep(100)
  }
}
