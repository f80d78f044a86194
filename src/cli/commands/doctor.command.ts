import { accessOptions, type DeclareCommand, dataOption, outputOption } from '../options.ts'

export const declare: DeclareCommand = (program, exitWith) => {
  accessOptions(program.command('doctor'))
    .description('check which engines and tools are installed and what is missing')
    .addOption(dataOption())
    .addOption(outputOption(['json', 'yaml']))
    .action(async options => exitWith(await (await import('./doctor.ts')).doctor(options)))
}
