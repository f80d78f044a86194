import { accessOptions, type DeclareCommand, outputOption, positiveInteger } from '../options.ts'

export const declare: DeclareCommand = program => {
  accessOptions(program.command('queue'))
    .description('show queued Runs in order with reasons, and usage by tenant')
    .option('--pool <pool>', 'show only this WorkerPool (default: all)')
    .option('--limit <n>', 'maximum Runs shown for each pool (default: 200)', positiveInteger)
    .addOption(outputOption(['json', 'yaml', 'wide']))
    .action(async options => (await import('./queue.ts')).queue(options))
}
