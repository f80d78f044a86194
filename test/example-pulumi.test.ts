import { deepEqual } from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { parse, parseAllDocuments } from 'yaml'
import type { Stack } from '../src/api/index.ts'
import { specErrors } from '../src/controllers/stack/spec-errors.ts'

test('the Stack of examples/pulumi is valid, and gives its program the configuration that it declares', () => {
  const [secret, stack] = parseAllDocuments(readFileSync('examples/pulumi/stack.yaml', 'utf8')).map(each => each.toJS())
  const { spec } = stack as Stack
  deepEqual(specErrors(spec), [])
  const { name, config, outputs } = parse(spec.source.inline?.files['Pulumi.yaml'] ?? '')
  deepEqual([name, Object.keys(outputs)], ['greeter', ['greeting', 'login']])
  deepEqual(Object.keys(config).sort(), [...Object.keys(spec.variables ?? {}), ...Object.keys(secret.stringData)].sort())
  deepEqual(spec.variablesFrom, [{ secretRef: { name: secret.metadata.name } }])
})
