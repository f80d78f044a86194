import { accessOptions, collect, type DeclareCommand, duration, outputOption, positiveInteger } from '../options.ts'

export const declare: DeclareCommand = program => {
  const token = program.command('token').description('manage join tokens for workers on other machines')
  const load = () => import('./token.ts')

  accessOptions(token.command('create'))
    .description('create a join token and print it; it cannot be shown again')
    .option('--pool <pool>', 'WorkerPool that workers join', 'default')
    .option('--ttl <duration>', 'lifetime of the token', duration, '24h')
    .option('--uses <n>', 'maximum number of uses (default: unlimited)', positiveInteger)
    .option('--label <key=value>', 'label of every worker that joins (repeatable)', collect, [])
    .option('--allow-label <key[=value]>', 'label that a worker may choose, * for any (repeatable)', collect, [])
    .action(async options => (await load()).create(options))
  accessOptions(token.command('list'))
    .description('list join tokens, and the number of workers that joined with each')
    .option('--all', 'also list expired tokens and those of workers that pools start')
    .addOption(outputOption(['json', 'yaml']))
    .action(async options => (await load()).list(options))
  accessOptions(token.command('revoke'))
    .description('revoke join tokens and the credentials of the workers that joined with them')
    .argument('<id...>', 'ids of join tokens')
    .option('--keep-workers', 'keep the credentials of workers that have joined')
    .action(async (ids, options) => (await load()).revoke(ids, options))
}
