/** A worker that a pool starts repeats its environment on its command line, for `ps`: there is nothing to parse. */
function isStartedByPool(): boolean {
  const { OARLOCK_WORKER_NAME: name, OARLOCK_POOL: pool } = process.env
  const expected = ['worker', '--name', name, '--pool', pool]
  return name !== undefined && pool !== undefined && process.argv.slice(2).join('\0') === expected.join('\0')
}

async function startWorker(): Promise<number> {
  const { worker } = await import('./commands/worker.ts')
  return await worker({})
}

async function run(argv: string[]): Promise<number> {
  // A reader such as `oarlock get … | head` closes the pipe early. The process ends then, successfully.
  process.stdout.on('error', error => {
    if ((error as NodeJS.ErrnoException).code === 'EPIPE') process.exit(0)
    throw error
  })
  return await (await import('./program.ts')).run(argv)
}

process.exitCode = isStartedByPool() ? await startWorker() : await run(process.argv.slice(2))
