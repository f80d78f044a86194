import { accessOptions, type DeclareCommand } from '../options.ts'

export const declare: DeclareCommand = program => {
  accessOptions(program.command('describe'))
    .description('show an object with its conditions, Runs and events')
    .argument('<type>', 'type such as stack, or TYPE/NAME')
    .argument('[name]', 'name of the object')
    .action(async (type, name, options) => (await import('./describe.ts')).describe(type, name, options))
}
