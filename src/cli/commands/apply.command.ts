import { accessOptions, collect, type DeclareCommand, outputOption, waitOptions } from '../options.ts'

export const declare: DeclareCommand = (program, exitWith) => {
  waitOptions(accessOptions(program.command('apply')), false, 'wait until the Stacks are Ready')
    .description('create or update objects (server-side apply)')
    .requiredOption('-f, --filename <file>', 'objects to apply: a file, a directory, or - for stdin (repeatable)', collect)
    .option('--force', 'take over fields that other managers own')
    .option('--dry-run', 'validate on the server without changing anything')
    .addOption(outputOption())
    .action(async options => exitWith(await (await import('./apply.ts')).apply(options)))
}
