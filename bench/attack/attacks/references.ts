/** A Stack that reaches another namespace through its fields, its name, or the objects that it applies. */
import { writeFileSync } from 'node:fs'
import { type StackSpec, systemNamespace } from '../../../src/api/index.ts'
import { secretResource } from '../../../src/kubernetes/client/index.ts'
import { runOarlock } from '../../../test/support/run-program.ts'
import type { Attack } from '../attack.ts'
import { attackerNamespace, type Target, victimNamespace } from '../target.ts'

const author = { actor: 'stack author' } as const

const script = '(env; cat ../inputs/* ../*/variables.json) 2>/dev/null | od -An -v -w256 -tx1'
const base: StackSpec = {
  ...{ engine: 'command', source: { inline: { files: { 'a.sh': script } } }, command: { apply: ['sh', 'a.sh'] } },
  ...{ pool: 'attack', retry: { limit: 0 } },
}

/** Stacks that print what they reference. */
const referencesTo = (secrets: readonly string[], stacks: readonly string[]): Partial<StackSpec>[] => [
  ...secrets.flatMap((name): Partial<StackSpec>[] => [
    { variablesFrom: [{ secretRef: { name } }] },
    { env: [{ name: 'STOLEN', secretKeyRef: { name, key: 'password' } }] },
  ]),
  ...stacks.map((name): Partial<StackSpec> => ({ variablesFrom: [{ stackRef: { name } }] })),
]

/** Stacks with references whose text only errors could show. */
const unreadable = (secrets: readonly string[], stacks: readonly string[], { allowedDirectory }: Target): Partial<StackSpec>[] => [
  ...secrets.flatMap((name): Partial<StackSpec>[] => [
    { variablesFrom: [{ configMapRef: { name } }] },
    { source: { git: { url: `file://${allowedDirectory}/none`, secretRef: { name } } } },
    { engine: 'manifests', command: undefined, manifests: { kubeconfigSecretRef: { name, key: 'password' } } },
  ]),
  ...stacks.map((name): Partial<StackSpec> => ({ dependsOn: [{ name }] })),
]

const fields: Attack = {
  name: 'references-to-other-namespaces',
  ...author,
  promise: 'References',
  async attempt(target, control) {
    const names = [
      `${victimNamespace}/login`,
      `../${victimNamespace}/login`,
      `../../${victimNamespace}/secrets/login`,
      `..%2F..%2F${victimNamespace}%2Fsecrets%2Flogin`,
      `login?namespace=${victimNamespace}`,
    ]
    const outputs = [`${victimNamespace}/web`, `../../${victimNamespace}/stacks/web`, `..%2f..%2f${victimNamespace}%2fstacks%2fweb`]
    const own = { names: [target.newName('own')], outputs: [target.newName('own-outputs')] }
    const value = 'value-of-the-author-41d8'
    await target.createSecret(own.names[0]!, { password: value })
    await target.author.create(own.outputs[0]!, {
      ...base,
      source: { inline: { files: { 'a.sh': `echo '{"value":{"value":"${value}"}}' > $OARLOCK_OUTPUTS` } } },
    })
    const run = async (spec: Partial<StackSpec>): Promise<string> => {
      const name = target.newName('reference')
      const isCreated = await target.createIfValid(name, { ...base, ...spec })
      return isCreated ? (await target.readResult(name, await target.untilSettled(name))).text : ''
    }
    for (const spec of referencesTo(own.names, own.outputs)) {
      const digits = (await run(spec)).replace(/[^0-9a-f]/g, '')
      control(digits.includes(Buffer.from(value).toString('hex')), `${JSON.stringify(spec)} gives nothing of its own namespace`)
    }
    const texts = await Promise.all([...referencesTo(names, outputs), ...unreadable(names, outputs, target)].map(run))
    return texts.flatMap(text => target.secretsIn(text))
  },
}

const applied: Attack = {
  name: 'manifests-in-other-namespaces',
  ...author,
  promise: 'Applied objects',
  async attempt(target, control) {
    const name = target.newName('planted')
    const apply = async (namespace: string) => {
      const secret = `apiVersion: v1\nkind: Secret\nmetadata: { name: ${name}, namespace: ${namespace} }\nstringData: { a: b }\n`
      return (await target.runStack({ engine: 'manifests', source: { inline: { files: { 'a.yaml': secret } } } })).run?.status
    }
    const own = await apply(attackerNamespace)
    control(own?.phase === 'Succeeded', `in its own namespace: ${own?.message}`)
    await apply(victimNamespace)
    const planted = await target.admin.resource(secretResource).getOrUndefined(name, { namespace: victimNamespace })
    return planted ? ['wrote a Secret of another namespace'] : []
  },
}

/** Objects by which a user would get more rights; what is created is deleted. */
const escalating = (name: string, subject: string): [string, string][] => [
  [
    'a ClusterRoleBinding',
    `apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: { name: ${name} }\nroleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin }\nsubjects: [${subject}]\n`,
  ],
  [
    'a RoleBinding of admin in another namespace',
    `apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: { name: ${name}, namespace: ${victimNamespace} }\nroleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin }\nsubjects: [${subject}]\n`,
  ],
  [
    'a Role with Secrets',
    `apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: { name: ${name}, namespace: ${victimNamespace} }\nrules: [{ apiGroups: [''], resources: [secrets], verbs: [get, list] }]\n`,
  ],
  [
    'an aggregated ClusterRole',
    `apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: { name: ${name}, labels: { rbac.authorization.k8s.io/aggregate-to-view: "true" } }\nrules: [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }]\n`,
  ],
  [
    'an address of the stores',
    `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: oarlock-endpoint-stores, namespace: ${systemNamespace} }\ndata: { url: "https://127.0.0.1:1" }\n`,
  ],
  [
    'a credential of a worker',
    `apiVersion: v1\nkind: Secret\nmetadata: { name: worker-credential-${name}, namespace: oarlock-workers }\nstringData: { worker: x }\n`,
  ],
  [
    'a WorkerPool',
    `apiVersion: oarlock.dev/v1alpha1\nkind: WorkerPool\nmetadata: { name: ${name} }\nspec: { mode: Process, engineEnvironment: ["AWS_*"], minimumIsolation: Sandbox, allowedNetworks: [Host] }\n`,
  ],
  [
    'a Stack in another namespace',
    `apiVersion: oarlock.dev/v1alpha1\nkind: Stack\nmetadata: { name: ${name}, namespace: ${victimNamespace} }\nspec: { engine: command, suspend: true, source: { inline: { files: { a: "" } } }, command: { apply: ["true"] } }\n`,
  ],
  ['a Tenant', `apiVersion: oarlock.dev/v1alpha1\nkind: Tenant\nmetadata: { name: ${name} }\nspec: { namespaces: [${victimNamespace}] }\n`],
  [
    'the definition of Stacks',
    `apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: { name: stacks.oarlock.dev, labels: { owned: "yes" } }\n`,
  ],
  [
    'a quota in another namespace',
    `apiVersion: v1\nkind: ResourceQuota\nmetadata: { name: ${name}, namespace: ${victimNamespace} }\nspec: { hard: { secrets: "0" } }\n`,
  ],
]

const rights: Attack = {
  name: 'manifests-of-rights',
  ...author,
  promise: 'Applied objects',
  slow: true,
  async attempt(target, control) {
    const name = target.newName('rights')
    const subject = '{ kind: ServiceAccount, name: author, namespace: attacker }'
    const file = `${target.newPath()}.yaml`
    const gained: string[] = []
    for (const [what, manifest] of escalating(name, subject)) {
      const { run } = await target.runStack({ engine: 'manifests', source: { inline: { files: { 'a.yaml': manifest } } } })
      if (run?.status?.phase === 'Succeeded') gained.push(`applied ${what}`)
      writeFileSync(file, manifest)
      const { code, stderr } = await runOarlock(['apply', '-f', file, '--dry-run', '--kubeconfig', target.kubeconfig])
      control(code === 0, `an operator may not apply ${what}: ${stderr}`)
    }
    const secrets = await target.send('GET', `/api/v1/namespaces/${victimNamespace}/secrets`, { token: target.authorToken })
    return [...gained, ...target.secretsIn(secrets.text)]
  },
}

const tokenSecrets: Attack = {
  name: 'manifests-token-of-service-account',
  ...author,
  promise: 'Applied objects',
  async attempt(target, control) {
    const name = target.newName('token')
    const manifest = `apiVersion: v1\nkind: Secret\nmetadata: { name: ${name}, namespace: ${victimNamespace}, annotations: { kubernetes.io/service-account.name: default } }\ntype: kubernetes.io/service-account-token\n`
    const { run } = await target.runStack({ engine: 'manifests', source: { inline: { files: { 'a.yaml': manifest } } } })
    // As any Secret of a type that is no credential would be, in its own namespace: manifests-in-other-namespaces.
    control(/service-account-token|forbidden|may not|cannot/i.test(run?.status?.message ?? ''), `it ended with ${run?.status?.message}`)
    const created = await target.admin.resource(secretResource).getOrUndefined(name, { namespace: victimNamespace })
    // The attacker cannot read it there, but a worker can.
    return created?.data?.token ? ['made the server issue a token of a ServiceAccount of another namespace'] : []
  },
}

export const referenceAttacks: readonly Attack[] = [fields, applied, rights, tokenSecrets]
