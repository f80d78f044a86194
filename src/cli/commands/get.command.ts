import { accessOptions, type DeclareCommand, outputOption } from '../options.ts'

export const declare: DeclareCommand = program => {
  accessOptions(program.command('get'), { allNamespaces: true })
    .description('list objects of any type; "oarlock" means all kinds of Oarlock')
    .argument('<type>', 'a type (stacks), a list (stacks,runs) or TYPE/NAME')
    .argument('[name...]', 'names of objects (default: all)')
    .option('-l, --selector <selector>', 'label selector (default: all objects)')
    .addOption(outputOption())
    .action(async (type, names, options) => (await import('./get.ts')).get(type, names, options))
}
