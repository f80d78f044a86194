import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import type { StackSpec } from '../../api/index.ts'
import { referableStacks, selectInputs } from './select-inputs.ts'

const spec = (fields: Partial<StackSpec>): StackSpec => ({ engine: 'terraform', source: { inline: { files: {} } }, ...fields })
const selected = (fields: Partial<StackSpec>) =>
  Object.fromEntries(
    Object.entries(selectInputs(spec(fields))).map(([kind, objects]) => [
      kind,
      Object.fromEntries([...objects].map(([name, keys]) => [name, keys === 'all' ? keys : [...keys].sort()])),
    ]),
  )
const none = { secrets: {}, configMaps: {}, outputs: {} }

for (const [name, fields, expected] of [
  ['nothing for a spec without references', { dependsOn: [{ name: 'net' }] }, none],
  [
    'the key of an environment variable',
    { env: [{ name: 'A', secretKeyRef: { name: 'api', key: 'token' } }] },
    { ...none, secrets: { api: ['token'] } },
  ],
  [
    'the keys that variables are renamed from',
    {
      variablesFrom: [
        { secretRef: { name: 'db', keys: { dsn: 'x' } } },
        { configMapRef: { name: 'settings', keys: { region: 'y' } } },
        { stackRef: { name: 'net', outputs: { url: 'z' } } },
      ],
    },
    { secrets: { db: ['dsn'] }, configMaps: { settings: ['region'] }, outputs: { net: ['url'] } },
  ],
  [
    'all keys where none is named',
    { variablesFrom: [{ secretRef: { name: 'db' } }, { configMapRef: { name: 'settings' } }, { stackRef: { name: 'net' } }] },
    { secrets: { db: 'all' }, configMaps: { settings: 'all' }, outputs: { net: 'all' } },
  ],
  [
    'the keys of git credentials',
    { source: { git: { url: 'https://git.test/x', secretRef: { name: 'git' } } } },
    { ...none, secrets: { git: ['known_hosts', 'password', 'ssh-privatekey', 'username'] } },
  ],
  ['the key of a kubeconfig', { manifests: { kubeconfigSecretRef: { name: 'k', key: 'admin' } } }, { ...none, secrets: { k: ['admin'] } }],
  [
    'the keys that engine ansible uses',
    {
      ansible: {
        playbooks: ['site.yml'],
        become: { passwordSecretRef: { name: 'b', key: 'password' } },
        privateKeySecretRef: { name: 'ssh' },
        vaultPasswords: [{ id: 'prod', secretKeyRef: { name: 'v', key: 'p' } }],
      },
    },
    { ...none, secrets: { b: ['password'], ssh: ['ssh-privatekey'], v: ['p'] } },
  ],
  ['its default key', { manifests: { kubeconfigSecretRef: { name: 'k' } } }, { ...none, secrets: { k: ['kubeconfig'] } }],
  [
    'the keys of all references to one Secret',
    {
      env: [{ name: 'A', secretKeyRef: { name: 's', key: 'a' } }],
      variablesFrom: [{ secretRef: { name: 's', keys: { b: 'b' } } }],
      manifests: { kubeconfigSecretRef: { name: 's' } },
    },
    { ...none, secrets: { s: ['a', 'b', 'kubeconfig'] } },
  ],
  [
    'all keys if one of the references is to all',
    { variablesFrom: [{ secretRef: { name: 's' } }, { secretRef: { name: 's', keys: { b: 'b' } } }] },
    { ...none, secrets: { s: 'all' } },
  ],
] as [string, Partial<StackSpec>, object][])
  test(`selects ${name}`, () => deepEqual(selected(fields), expected))

test('a program of engine pulumi may refer to Stacks that its spec names, one of another engine to none', () => {
  const fields: Partial<StackSpec> = {
    dependsOn: [{ name: 'cluster' }],
    variablesFrom: [{ stackRef: { name: 'net' } }, { secretRef: { name: 's' } }],
  }
  deepEqual([...referableStacks(spec({ ...fields, engine: 'pulumi' }))], ['cluster', 'net'])
  deepEqual([...referableStacks(spec(fields))], [])
})
