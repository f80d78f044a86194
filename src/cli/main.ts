import { run } from './program.ts'

// A reader that has seen enough (`oarlock get … | head`) closes the pipe: that ends us, and is no failure.
process.stdout.on('error', error => {
  if ((error as NodeJS.ErrnoException).code === 'EPIPE') process.exit(0)
  throw error
})

process.exitCode = await run(process.argv.slice(2))
