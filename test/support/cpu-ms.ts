/** The processor time that `run` takes in this thread, in milliseconds: unlike the time that passes, other processes hardly change it. */
export function cpuMs(run: () => void): number {
  const before = process.threadCpuUsage()
  run()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1_000
}
