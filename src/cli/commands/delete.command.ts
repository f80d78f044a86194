import { accessOptions, collect, type DeclareCommand, waitOptions } from '../options.ts'

export const declare: DeclareCommand = (program, exitWith) => {
  waitOptions(accessOptions(program.command('delete')), true)
    .description("delete objects; spec.deletion controls a Stack's resources")
    .argument('[type]', 'type such as stack, or TYPE/NAME')
    .argument('[name...]', 'names of objects')
    .option('-f, --filename <file>', 'objects to delete: a file, a directory, or - for stdin (repeatable)', collect)
    .option('--force', 'delete a Stack and leave its resources, managed by nothing')
    .option('--ignore-not-found', 'treat objects that do not exist as deleted')
    .addHelpText('after', "\nspec.deletion determines whether a Stack's resources are destroyed.")
    .action(async (type, names, options) => exitWith(await (await import('./delete.ts')).remove(type ? [type, ...names] : [], options)))
}
