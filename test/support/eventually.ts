/** Resolves as soon as `check` holds, looked at after every turn of the event loop; fails with `what` after `timeoutMs`. */
export async function eventually(check: () => boolean, what: string, timeoutMs = 5_000): Promise<void> {
  const untilMs = performance.now() + timeoutMs
  while (!check()) {
    if (performance.now() > untilMs) throw new Error(`did not happen within ${timeoutMs} ms: ${what}`)
    await new Promise(resolve => setTimeout(resolve, 2))
  }
}
