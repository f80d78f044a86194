/** The dialect of templates. `test/json-path-peer.slow.test.ts` compares it with kubectl. */
import { equal, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { JsonPathError, renderJsonPath } from './json-path.ts'

const list = {
  kind: 'List',
  items: [
    { kind: 'Stack', metadata: { name: 'a', labels: { 'app.kubernetes.io/name': 'web' } }, spec: { size: 3, html: '<b>' } },
    { kind: 'Stack', metadata: { name: 'b' }, spec: { size: 10 } },
    { kind: 'Run', metadata: { name: 'c' } },
  ],
}

for (const { template, want } of [
  { template: '{.kind}', want: 'List' },
  { template: '{$.kind} of {.items[0].kind}', want: 'List of Stack' },
  { template: '{.items[*].metadata.name}', want: 'a b c' },
  { template: '{.items[-1].metadata.name}', want: 'c' },
  { template: '{.items[0:2].metadata.name}', want: 'a b' },
  { template: '{.items[0,2].metadata.name}', want: 'a c' },
  { template: '{..name}', want: 'a b c' },
  { template: '{.items[?(@.kind=="Stack")].metadata.name}', want: 'a b' },
  { template: '{.items[?(@.spec.size>5)].metadata.name}', want: 'b' },
  { template: '{.items[0].metadata.labels.app\\.kubernetes\\.io/name}', want: 'web' },
  { template: '{.items[0].spec}', want: '{"html":"\\u003cb\\u003e","size":3}' },
  { template: '{.items[0].none}', want: '' },
  { template: '{range .items[*]}{.metadata.name}={.spec.size}{"\\n"}{end}', want: 'a=3\nb=10\nc=\n' },
])
  test(`renders ${template}`, () => equal(renderJsonPath(template, list), want))

for (const { template, message } of [
  { template: '{.kind', message: /at position 1 is not closed/ },
  { template: '{range .items[*]}{.kind}', message: /\{range\} has no \{end\}/ },
  { template: '{end}', message: /\{end\} has no \{range\}/ },
  { template: '{.items[3].kind}', message: /index 3 is out of bounds of a list of 3/ },
  { template: '{.kind[0]}', message: /is not a list/ },
  { template: '{.items[0:2:0]}', message: /the step of \[0:2:0\] must be > 0/ },
])
  test(`rejects ${template}`, () =>
    throws(
      () => renderJsonPath(template, list),
      (error: Error) => error instanceof JsonPathError && message.test(error.message),
    ))
