// Preloaded into each test file: fails one whose process still runs 2 minutes after its last test. `--test-timeout` limits tests and hooks
// only: an open handle would keep the file, and with it the whole run, forever.
import { isMainThread } from 'node:worker_threads'

const limitMs = Number(process.env.OARLOCK_TEST_EXIT_LIMIT_MS ?? 120_000)

// Only for the file itself: not in the runner, nor in its threads and in processes that it forks.
if (isMainThread && process.env.NODE_TEST_CONTEXT) {
  process.execArgv = process.execArgv.filter(arg => !arg.startsWith('--import=') || !arg.endsWith('exit-limit.mjs'))
  const { after } = await import('node:test')
  after(startLimit)
}

function startLimit() {
  const limit = setTimeout(() => {
    console.error(`${process.argv[1]} did not exit ${limitMs} ms after its last test; open: ${process.getActiveResourcesInfo().join(', ')}`)
    process.exit(1)
  }, limitMs)
  limit.unref()
}
