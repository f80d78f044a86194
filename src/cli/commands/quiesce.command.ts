import { accessOptions, type DeclareCommand, duration } from '../options.ts'

const notes = `
The chart runs it before "helm uninstall": without the stores and its permissions a
worker cannot save the state of a Run that is applying, and the next installation
would create its resources again. If Runs are still active after --timeout, the
controllers are started again, and it exits with 6.`

export const declare: DeclareCommand = program => {
  accessOptions(program.command('quiesce'))
    .description('stop the controllers and wait until no Run is active')
    .option('--timeout <duration>', 'maximum time to wait', duration, '4m')
    .addHelpText('after', notes)
    .action(async options => await (await import('./quiesce.ts')).quiesce(options))
}
