import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { StackSpec } from '../../api/index.ts'
import { specErrors } from './spec-errors.ts'

const source = { inline: { files: { 'main.tf': '' } } }

for (const [what, spec, want] of [
  ['a valid Stack', {}, []],
  [
    'an entry of variablesFrom without a source',
    { variablesFrom: [{}] },
    ['spec.variablesFrom[0]: Required value: exactly one of stackRef, secretRef, configMapRef is required'],
  ],
  [
    'an entry of variablesFrom with two sources',
    { variablesFrom: [{ secretRef: { name: 'a' } }, { secretRef: { name: 'a' }, configMapRef: { name: 'b' } }] },
    [
      'spec.variablesFrom[1]: Forbidden: an entry takes exactly one of stackRef, secretRef, configMapRef, got secretRef and configMapRef; make it two entries',
    ],
  ],
  [
    'an env variable without a value',
    { env: [{ name: 'A' }] },
    ['spec.env[0]: Required value: variable A requires a value or a secretKeyRef'],
  ],
  [
    'an env variable with two values',
    { env: [{ name: 'A', value: 'x', secretKeyRef: { name: 's', key: 'k' } }] },
    ['spec.env[0]: Forbidden: variable A has both value and secretKeyRef; keep one'],
  ],
  [
    'an env variable with a reserved name',
    { env: [{ name: 'OARLOCK_TOKEN', value: 'x' }] },
    ['spec.env[0].name: Invalid value: "OARLOCK_TOKEN": names that start with OARLOCK_ are reserved'],
  ],
  [
    'engine command without a program',
    { engine: 'command' },
    ['spec.command.apply: Required value: engine command requires a program to apply with, such as ["./apply.sh"]'],
  ],
  ['a valid Stack of engine ansible', { engine: 'ansible', ansible: { playbooks: ['site.yml'] } }, []],
  [
    'engine ansible without a playbook',
    { engine: 'ansible' },
    ['spec.ansible.playbooks: Required value: engine ansible requires a playbook of the source, such as ["site.yml"]'],
  ],
  [
    'options of engine ansible with another engine',
    { engine: 'manifests', ansible: { playbooks: ['site.yml'] } },
    ['spec.ansible: Forbidden: only allowed for engine ansible, got engine manifests'],
  ],
  [
    'a section of another engine',
    { engine: 'opentofu', manifests: {} },
    ['spec.manifests: Forbidden: only allowed for engine manifests, got engine opentofu'],
  ],
  ['a valid Stack of engine pulumi', { engine: 'pulumi', pulumi: { policyPacks: ['policies/aws', './p..q'] } }, []],
  [
    'options of engine pulumi with another engine',
    { engine: 'opentofu', pulumi: {} },
    ['spec.pulumi: Forbidden: only allowed for engine pulumi, got engine opentofu'],
  ],
  [
    'dependents without targets, and policy packs outside of the source',
    { engine: 'pulumi', pulumi: { targetDependents: true, policyPacks: ['/etc', 'a/../../b'] } },
    [
      'spec.pulumi.targetDependents: Forbidden: only allowed with spec.pulumi.targets: name the resources, or remove it',
      'spec.pulumi.policyPacks[0]: Invalid value: "/etc": it must be a path in the source, relative to its root and without ".."',
      'spec.pulumi.policyPacks[1]: Invalid value: "a/../../b": it must be a path in the source, relative to its root and without ".."',
    ],
  ],
  [
    'IDs of interrupted creations without a rule that uses them',
    { engine: 'pulumi', pulumi: { importPendingCreates: [{ urn: 'urn:pulumi:a::b::c::d', id: 'x' }] } },
    [
      'spec.pulumi.importPendingCreates: Forbidden: only allowed with spec.pulumi.pendingCreates Import or Clear: set it, or remove the list',
    ],
  ],
  [
    'an import of interrupted creations without IDs',
    { engine: 'pulumi', pulumi: { pendingCreates: 'Import' } },
    ['spec.pulumi.importPendingCreates: Required value: pendingCreates Import requires the URN and the ID of a resource to import'],
  ],
] as [string, Partial<StackSpec>, string[]][]) {
  test(what, () =>
    assert.deepEqual(
      specErrors({ engine: 'terraform', source, ...spec }).map(({ field, message }) => `${field}: ${message}`),
      want,
    ),
  )
}
