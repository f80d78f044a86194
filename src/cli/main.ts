/** A worker that a pool has started says on its command line, for `ps`, only what its environment says, too: nothing to parse. */
function isToldByEnvironment(): boolean {
  const { OARLOCK_WORKER_NAME: name, OARLOCK_POOL: pool } = process.env
  const told = ['worker', '--name', name, '--pool', pool]
  return name !== undefined && pool !== undefined && process.argv.slice(2).join('\0') === told.join('\0')
}

async function startWorker(): Promise<number> {
  const { worker } = await import('./commands/worker.ts')
  return await worker({})
}

async function run(argv: string[]): Promise<number> {
  // A reader that has seen enough (`oarlock get … | head`) closes the pipe: that ends us, and is no failure.
  process.stdout.on('error', error => {
    if ((error as NodeJS.ErrnoException).code === 'EPIPE') process.exit(0)
    throw error
  })
  return await (await import('./program.ts')).run(argv)
}

process.exitCode = isToldByEnvironment() ? await startWorker() : await run(process.argv.slice(2))
