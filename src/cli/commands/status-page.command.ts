import { type DeclareCommand, dataOption } from '../options.ts'

export const declare: DeclareCommand = (program, exitWith) => {
  program
    .command('status-page')
    .description('print the link to the status page of a running Oarlock')
    .addOption(dataOption())
    .option('--health-address <host:port>', 'address of the status page', '127.0.0.1:7467')
    .action(async options => exitWith(await (await import('./status-page.ts')).statusPage(options)))
}
