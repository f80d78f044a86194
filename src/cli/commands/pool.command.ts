import { collect, type DeclareCommand, positiveInteger } from '../options.ts'
import { roleOptions } from '../role-options.ts'

const notes = `
Starts the workers of pools of mode Process that "oarlock controller" requests: it
claims a request while this host has room, and starts a worker process that joins
the pool. Any number of hosts can serve a pool.

SIGTERM or Ctrl-C drains: nothing more is claimed, and Runs may finish for --grace;
then, or at a second signal, engines are interrupted so that they save their state.
After a crash the workers keep running, and the next process on the same --data
adopts them (on Linux).`

export const declare: DeclareCommand = (program, exitWith) => {
  roleOptions(program.command('pool'), { dataName: 'the Runs, caches and output of the workers', grace: '30s' })
    .option('--pool <name>', 'WorkerPool to start workers of (repeatable; default: "default")', collect, [])
    .option('--max-workers <n>', 'maximum workers on this host (default: one per core, at least 2)', positiveInteger)
    .option('--label <key=value>', 'label of the workers that are started here (repeatable)', collect, [])
    .option('--allow-path <dir>', 'directory that Stacks may read through source.path (repeatable)', collect, [])
    .option('--health-address <host:port>', 'serve /livez, /readyz and /metrics; port 0 picks a free port')
    .description('run workers on this host for a controller elsewhere')
    .addHelpText('after', notes)
    .action(async options => exitWith(await (await import('./pool.ts')).pool(options)))
}
