import { type DeclareCommand, dataOption } from '../options.ts'

export const declare: DeclareCommand = (program, exitWith) => {
  program
    .command('status-page')
    .description('print the link to the status page of a running Oarlock')
    .addOption(dataOption())
    .option('--health-address <host:port>', 'address of the status page (default: that of the running process)')
    .action(async options => exitWith(await (await import('./status-page.ts')).statusPage(options)))
}
