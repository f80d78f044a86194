import { Option } from 'commander'
import { type DeclareCommand, duration, outputOption, positiveInteger, sizeRange } from '../options.ts'

export const declare: DeclareCommand = program => {
  program
    .command('simulate')
    .description('estimate how many workers a fleet needs, and its cost')
    .option('--stacks <n>', 'number of Stacks', positiveInteger, 1_000)
    .option('--interval <duration>', 'drift check interval of each Stack, 0s for none', duration, '1h')
    .option('--tenants <n>', 'number of tenants; tenant k has 1/k of the Stacks of tenant 1', positiveInteger, 1)
    .option('--profile <file>', 'JSON with durations, failure rates and prices (docs/simulate.md)')
    .option('--workers <from..to>', 'pool sizes to compare, or one size (default: 10..100)', sizeRange)
    .option('--slots <n>', 'concurrent Runs for each worker', positiveInteger, 1)
    .addOption(new Option('--lifecycle <lifecycle>', 'lifecycle of the workers').choices(['OneShot', 'Warm']).default('OneShot'))
    .option('--min <n>', 'minimum pool size (default: 0)', positiveInteger)
    .option('--wait <duration>', 'target for the p99 wait of changes', duration, '1m')
    .option('--hours <n>', 'simulated hours, starting at midnight', positiveInteger, 24)
    .option('--seed <n>', 'random seed; equal seeds give equal results', positiveInteger, 1)
    .option('--svg <file>', 'write a chart to this file')
    .addOption(outputOption(['json', 'yaml']))
    .action(async options => (await import('./simulate.ts')).simulate(options))
}
