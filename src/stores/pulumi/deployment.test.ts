import { deepStrictEqual, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { DeploymentError, parseUntypedDeployment } from './deployment.ts'

const urn = 'urn:pulumi:dev::app::a:b:C::x'

for (const { name, value } of [
  { name: 'a stack', value: { version: 3, deployment: { resources: [{ urn, future: 1 }], future: { x: 1 } } } },
  { name: 'a stack without resources', value: { version: 3, deployment: null } },
  { name: 'a stack that needs features', value: { version: 4, features: ['taint'], deployment: {} } },
])
  test(`the export of ${name} is parsed without losing a field`, () =>
    deepStrictEqual(parseUntypedDeployment(JSON.stringify(value)), value))

const withResource = (resource: unknown) => ({ version: 3, deployment: { resources: [resource] } })
for (const { name, value, want } of [
  { name: 'text', value: 'x', want: /not a JSON object/ },
  { name: 'a state of Terraform', value: { version: 4, serial: 1, lineage: 'l', resources: [] }, want: /not a state of Pulumi/ },
  { name: 'version 2', value: { version: 2, deployment: {} }, want: /version 2, supported are 3 and 4/ },
  { name: 'a resource without a URN', value: withResource({}), want: /resources\[0\] has no URN/ },
  { name: 'dependencies that are no URNs', value: withResource({ urn, dependencies: [1] }), want: /resources\[0\].dependencies/ },
  { name: 'resources that are no list', value: { version: 3, deployment: { resources: {} } }, want: /resources is not a list/ },
  {
    name: 'a pending operation without a resource',
    value: { version: 3, deployment: { pending_operations: [{ type: 'creating' }] } },
    want: /no URN/,
  },
])
  test(`${name} is rejected`, () =>
    throws(
      () => parseUntypedDeployment(JSON.stringify(value)),
      (error: Error) => error instanceof DeploymentError && want.test(error.message),
    ))

test('a file that is not JSON is rejected', () => throws(() => parseUntypedDeployment('{'), DeploymentError))
