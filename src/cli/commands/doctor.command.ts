import { accessOptions, type DeclareCommand, dataOption, outputOption } from '../options.ts'

export const declare: DeclareCommand = (program, exitWith) => {
  accessOptions(program.command('doctor'))
    .description('check this machine or, with --kubeconfig, a cluster')
    .addOption(dataOption())
    .addOption(outputOption(['json', 'yaml']))
    .action(async options => exitWith(await (await import('./doctor.ts')).doctor(options)))
}
