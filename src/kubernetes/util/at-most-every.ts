/** Calls `report` for the first value of each interval and ignores the others. */
export function atMostEvery<Value>(intervalMs: number, report: (value: Value) => void, nowMs = () => performance.now()) {
  let reportedMs = Number.NEGATIVE_INFINITY
  return (value: Value): void => {
    if (nowMs() - reportedMs < intervalMs) return
    reportedMs = nowMs()
    report(value)
  }
}
