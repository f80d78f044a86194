import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { stackResource } from '../../api/index.ts'
import { namespaceResource } from '../../kubernetes/client/index.ts'
import { objectName, type ServerTable, serialize, TablePrinter } from './print-objects.ts'

const table: ServerTable = {
  kind: 'Table',
  columnDefinitions: [{ name: 'Name' }, { name: 'Ready' }, { name: 'Message', priority: 1 }],
  rows: [
    { cells: ['network', 'True', 'applied'], object: { metadata: { namespace: 'shop' } as never } },
    { cells: ['app', null, ''], object: { metadata: { namespace: 'shop' } as never } },
  ],
}

const plain = { wide: false, withNamespace: false, withLabels: false, withHeaders: true, prefix: '' }

for (const [name, options, want] of [
  ['the server’s columns', { wide: false, withNamespace: false }, ['NAME      READY', 'network   True', 'app       <none>']],
  [
    'wide columns and the namespace',
    { wide: true, withNamespace: true },
    ['NAMESPACE   NAME      READY    MESSAGE', 'shop        network   True     applied', 'shop        app       <none>   <none>'],
  ],
  [
    'a prefix, when several types are listed',
    { wide: false, withNamespace: false, prefix: 'stack/' },
    ['NAME            READY', 'stack/network   True', 'stack/app       <none>'],
  ],
] as const) {
  test(`a table shows ${name}`, () => deepEqual(new TablePrinter({ ...plain, ...options }).lines(table), want))
}

test('later rows have the columns and widths of the first ones, and no headers', () => {
  const printer = new TablePrinter({ ...plain, withLabels: true })
  deepEqual(printer.lines(table)[2], 'app       <none>   <none>')
  const row = { cells: ['b', 'False', ''], object: { metadata: { labels: { y: '2', x: '1' } } as never } }
  deepEqual(printer.lines({ kind: 'Table', columnDefinitions: [], rows: [row] }), ['b         False    x=1,y=2'])
})

test('without headers', () => deepEqual(new TablePrinter({ ...plain, withHeaders: false }).lines(table)[0], 'network   True'))

test('omits managedFields', async () => {
  const object = { metadata: { name: 'a', managedFields: [{ manager: 'x' }] }, spec: { text: '1' } }
  equal(await serialize(object, 'yaml'), 'metadata:\n  name: a\nspec:\n  text: "1"')
  deepEqual(JSON.parse(await serialize({ items: [object] }, 'json')), { items: [{ metadata: { name: 'a' }, spec: { text: '1' } }] })
})

test('quotes text that kubectl, which reads YAML 1.1, takes for a boolean or a number', async () => {
  equal(await serialize({ drift: 'Off', key: 'y', mode: '0o644' }, 'yaml'), 'drift: "Off"\nkey: "y"\nmode: "0o644"')
})

test('keeps line ends of a text at the end, but for the one that the output adds', async () =>
  equal(await serialize({ text: 'a\n\n' }, 'yaml'), 'text: |+\n  a\n'))

test('names objects as kubectl does', () => {
  deepEqual([objectName(stackResource, 'a'), objectName(namespaceResource, 'b')], ['stack.oarlock.dev/a', 'namespace/b'])
})
