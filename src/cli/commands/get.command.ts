import { accessOptions, type DeclareCommand } from '../options.ts'
import { parseGetFormat } from '../output/get-format.ts'

export const declare: DeclareCommand = program => {
  accessOptions(program.command('get'), { allNamespaces: true })
    .description('list objects of any type; "oarlock" means all kinds of Oarlock')
    .argument('<type>', 'a type (stacks), a list (stacks,runs) or TYPE/NAME')
    .argument('[name...]', 'names of objects (default: all)')
    .option('-l, --selector <selector>', 'label selector (default: all objects)')
    .option('--field-selector <selector>', 'field selector, such as status.phase=Failed (default: all)')
    .option('-o, --output <format>', 'json, yaml, wide, name or jsonpath=TEMPLATE', parseGetFormat)
    .option('--sort-by <path>', 'sort by the field of this JSONPath, such as .metadata.name')
    .option('--no-headers', 'print no headers')
    .option('--show-labels', 'add a column with the labels')
    .option('-w, --watch', 'list the objects, then print each change')
    .option('--watch-only', 'print only the changes')
    .action(async (type, names, options) => (await import('./get.ts')).get(type, names, options))
}
