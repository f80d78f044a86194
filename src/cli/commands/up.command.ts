import { consoleOptions } from '../console-options.ts'
import { beginLeanStart } from '../lean-start.ts'
import { collect, type DeclareCommand, duration, durationBetween, positiveInteger, serverOptions } from '../options.ts'

export const declare: DeclareCommand = (program, exitWith) => {
  consoleOptions(serverOptions(program.command('up')))
    .description('run the API server, controllers and workers in one process')
    .option('--tls-san <name>', 'extra host name or IP address for the TLS certificate (repeatable)', collect, [])
    .option(
      '--health-address <host:port>',
      'address of the console, /livez, /readyz, /metrics and /queue; port 0 picks a free port',
      '127.0.0.1:7467',
    )
    .option('--allow-path <dir>', 'directory that Stacks may read through source.path (repeatable)', collect, [])
    .option('--max-workers <n>', 'maximum size of WorkerPool default (default: one per core, at least 2)', positiveInteger)
    .option('--max-running <n>', 'maximum concurrent Runs across all pools (default: unlimited)', positiveInteger)
    .option('--approval-timeout <duration>', 'how long an approval is valid', duration, '24h')
    .option(
      '--worker-lease-duration <duration>',
      'Lease of its workers, which stop 4s before its end (10s to 5m)',
      durationBetween('10s', '5m'),
      '10s',
    )
    .option('--replace-stores', 'after a restore: use the states in --data, even if other or newer ones are registered')
    .option('--sample', 'apply the sample Stacks of examples/stacks')
    .option('--apply <file>', 'file or directory to apply after the start (repeatable)', collect, [])
    .option('--exit-when-ready', 'exit when every applied Stack is in its expected state')
    .option('--timeout <duration>', 'maximum time for --exit-when-ready to wait', duration, '120s')
    .option('--grace <duration>', 'time for Runs to finish on shutdown before they are interrupted', duration, '30s')
    .action(async options => {
      beginLeanStart()
      exitWith(await (await import('./up.ts')).up(options))
    })
}
