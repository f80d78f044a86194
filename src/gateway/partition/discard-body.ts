/** Ends a response that no one reads: its connection would wait for a reader. Returns immediately. */
export function discardBody(body: AsyncIterable<Uint8Array>): void {
  const leave = async () => {
    for await (const _ of body) break
  }
  leave().catch(() => {})
}
