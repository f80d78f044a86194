import { accessOptions, collect, type DeclareCommand, duration, outputOption, positiveInteger } from '../options.ts'

export const declare: DeclareCommand = (program, exitWith) => {
  const worker = program
    .command('worker')
    .description('run a worker that executes Runs; "oarlock up" starts its own')
    .option('--name <name>', 'Worker name (default: $OARLOCK_WORKER_NAME)')
    .option('--pool <pool>', 'WorkerPool (default: $OARLOCK_POOL or "default")')
    .option('--server <url>', 'API server URL (default: $OARLOCK_SERVER)')
    .option('--token <token>', 'join token; visible in the process list, prefer --token-file')
    .option('--token-file <file>', 'file with the token (default: $OARLOCK_TOKEN_FILE or $OARLOCK_TOKEN)')
    .option('--once', 'exit after one Run (default: as the pool states, or Warm)')
    .option('--slots <n>', 'maximum concurrent Runs (default: the slots of the pool)', positiveInteger)
    .option('--label <key=value>', 'Worker label, if its join token allows it (repeatable)', collect, [])
    .option('--health-address <host:port>', 'serve /livez, /readyz and /startupz (default: $OARLOCK_HEALTH_ADDRESS)')
    .option('--idle-timeout <duration>', 'exit after this time without a Run (default: never)', duration)
    .action(async options => exitWith(await (await import('./worker.ts')).worker(options)))
  accessOptions(worker.command('revoke'))
    .description('revoke the credentials of workers, local or joined, immediately; their Runs are lost')
    .argument('<worker...>', 'names of Workers')
    .addOption(outputOption(['json', 'yaml']))
    .action(async (names, options) => (await import('./worker-revoke.ts')).revoke(names, options))
}
