import { type DeclareCommand, dataOption } from '../options.ts'

export const declare: DeclareCommand = (program, exitWith) => {
  program
    .command('console')
    .description('print a link that opens and signs in to the console, once')
    .addOption(dataOption())
    .action(async options => exitWith(await (await import('./console.ts')).printConsoleLink(options)))
}
