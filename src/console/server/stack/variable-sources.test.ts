import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { variableSources } from './variable-sources.ts'

const noReferences = { configMaps: new Map(), stacks: new Map() }
const hidden = { hidden: true }

test('of two sources of a variable the later one counts, and spec.variables before all', () => {
  const { variables } = variableSources(
    {
      variables: { size: 2 },
      variablesFrom: [{ configMapRef: { name: 'sizes' } }, { secretRef: { name: 'login', keys: { pw: 'password' } } }],
    },
    { ...noReferences, configMaps: new Map([['sizes', { values: { size: '1', password: 'p' } }]]) },
  )
  deepEqual(variables, [
    {
      ...{ name: 'password', field: 'spec.variablesFrom[0].configMapRef', source: { kind: 'ConfigMap', name: 'sizes', key: 'password' } },
      ...{ content: { value: 'p' }, overriddenBy: 'spec.variablesFrom[1].secretRef' },
    },
    {
      ...{ name: 'password', field: 'spec.variablesFrom[1].secretRef', source: { kind: 'Secret', name: 'login', key: 'pw' } },
      content: hidden,
    },
    { name: 'size', field: 'spec.variables.size', source: { kind: 'Spec' }, content: { value: 2 } },
    {
      ...{ name: 'size', field: 'spec.variablesFrom[0].configMapRef', source: { kind: 'ConfigMap', name: 'sizes', key: 'size' } },
      ...{ content: { value: '1' }, overriddenBy: 'spec.variables.size' },
    },
  ])
})

test('an output that the status of the other Stack does not have is hidden', () => {
  const spec = { variablesFrom: [{ stackRef: { name: 'network', outputs: { id: 'network', token: 'token' } } }] }
  const { variables } = variableSources(spec, { ...noReferences, stacks: new Map([['network', { values: { id: 'n-1' } }]]) })
  deepEqual(
    variables.map(({ name, content }) => [name, content]),
    [
      ['network', { value: 'n-1' }],
      ['token', hidden],
    ],
  )
})

test('a source that cannot be read is listed with the reason, and all keys of a Secret as one entry without values', () => {
  const spec = {
    variablesFrom: [{ configMapRef: { name: 'gone' } }, { secretRef: { name: 'all' } }],
    env: [{ name: 'A', secretKeyRef: { name: 's', key: 'k' } }],
  }
  const { variables, environment } = variableSources(spec, {
    ...noReferences,
    configMaps: new Map([['gone', { problem: 'it does not exist' }]]),
  })
  deepEqual(variables, [
    { field: 'spec.variablesFrom[0].configMapRef', source: { kind: 'ConfigMap', name: 'gone' }, problem: 'it does not exist' },
    { field: 'spec.variablesFrom[1].secretRef', source: { kind: 'Secret', name: 'all' }, content: hidden },
  ])
  deepEqual(environment, [{ name: 'A', field: 'spec.env.A', source: { kind: 'Secret', name: 's', key: 'k' }, content: hidden }])
})
