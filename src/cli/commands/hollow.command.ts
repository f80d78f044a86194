import { accessOptions, type DeclareCommand, duration, outputOption, positiveInteger, positiveNumber } from '../options.ts'

export const declare: DeclareCommand = (program, exitWith) => {
  accessOptions(program.command('hollow'))
    .description('load-test a server with many simulated workers in one process')
    .requiredOption('--workers <n>', 'number of workers', positiveInteger)
    .option('--runs-per-second <n>', 'rate at which Stacks are changed (default: none)', positiveNumber)
    .option('--stacks <n>', 'number of Stacks (default: 10 for each Run per second)', positiveInteger)
    .option('--profile <file>', 'JSON with durations and failure rates (default: 0s, no failures)')
    .option('--pool <pool>', 'WorkerPool of mode External; created for the test if missing', 'hollow')
    .option('--renew <duration>', 'Lease renewal interval; Leases last five times as long', duration, '2s')
    .option('--duration <duration>', 'time to run after all workers registered (default: until Ctrl-C)', duration)
    .option('--connections <n>', 'connections to the server', positiveInteger, 16)
    .option('--server <url>', 'API server URL instead of a kubeconfig (also: $OARLOCK_CA_FILE)')
    .option('--token-file <file>', 'file with the token for --server')
    .option('--keep', 'keep the Stacks and the WorkerPool afterwards')
    .addOption(outputOption(['json']))
    .action(async options => exitWith(await (await import('./hollow.ts')).hollow(options)))
}
