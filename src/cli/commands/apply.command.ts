import { accessOptions, collect, type DeclareCommand, outputOption } from '../options.ts'

export const declare: DeclareCommand = (program, exitWith) => {
  accessOptions(program.command('apply'))
    .description('create or update objects (server-side apply)')
    .requiredOption('-f, --filename <file>', 'objects to apply: a file, a directory, or - for stdin (repeatable)', collect)
    .option('--force', 'take over fields that other managers own')
    .option('--dry-run', 'validate on the server without changing anything')
    .addOption(outputOption())
    .action(async options => exitWith(await (await import('./apply.ts')).apply(options)))
}
