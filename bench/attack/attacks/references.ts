/** A Stack that reaches another namespace through its fields, its name, or the objects that it applies. */
import { type StackSpec, systemNamespace } from '../../../src/api/index.ts'
import { secretResource } from '../../../src/kubernetes/client/index.ts'
import type { Attack } from '../attack.ts'
import { victimNamespace } from '../target.ts'

const author = { actor: 'stack author' } as const

const fields: Attack = {
  name: 'references-to-other-namespaces',
  ...author,
  promise: 'References',
  async attempt(target) {
    const names = [
      `${victimNamespace}/login`,
      `../${victimNamespace}/login`,
      `../../${victimNamespace}/secrets/login`,
      `..%2F..%2F${victimNamespace}%2Fsecrets%2Flogin`,
      `login?namespace=${victimNamespace}`,
    ]
    const outputs = [`${victimNamespace}/web`, `../../${victimNamespace}/stacks/web`, `..%2f..%2f${victimNamespace}%2fstacks%2fweb`]
    const specs: Partial<StackSpec>[] = [
      ...names.flatMap((name): Partial<StackSpec>[] => [
        { variablesFrom: [{ secretRef: { name } }] },
        { variablesFrom: [{ configMapRef: { name } }] },
        { env: [{ name: 'STOLEN', secretKeyRef: { name, key: 'password' } }] },
        { source: { git: { url: `file://${target.allowedDirectory}/none`, secretRef: { name } } } },
        { engine: 'manifests', manifests: { kubeconfigSecretRef: { name, key: 'password' } } },
      ]),
      ...outputs.flatMap((name): Partial<StackSpec>[] => [{ variablesFrom: [{ stackRef: { name } }] }, { dependsOn: [{ name }] }]),
    ]
    const created = await Promise.all(
      specs.map(async spec => {
        const name = target.newName('reference')
        const script = '(env; cat ../inputs/* ../*/variables.json) 2>/dev/null | od -An -v -w256 -tx1'
        const base: StackSpec = { engine: 'command', source: { inline: { files: { 'a.sh': script } } }, command: { apply: ['sh', 'a.sh'] } }
        const isCreated = await target.author.create(name, { ...base, pool: 'attack', retry: { limit: 0 }, ...spec }).catch(() => undefined)
        return isCreated ? name : undefined
      }),
    )
    // A Stack after them has ended, so the others were looked at.
    await target.runScript('true')
    const gained: string[] = []
    for (const name of created) {
      if (!name) continue
      const runs = await target.author.runsOf(name)
      const { text } = await target.readResult(name, runs.at(-1))
      gained.push(...target.secretsIn(text))
    }
    return [...new Set(gained)]
  },
}

const applied: Attack = {
  name: 'manifests-in-other-namespaces',
  ...author,
  promise: 'Applied objects',
  async attempt(target) {
    const name = target.newName('planted')
    const secret = `apiVersion: v1\nkind: Secret\nmetadata: { name: ${name}, namespace: ${victimNamespace} }\nstringData: { a: b }\n`
    await target.runStack({ engine: 'manifests', source: { inline: { files: { 'a.yaml': secret } } } })
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
    `apiVersion: oarlock.dev/v1alpha1\nkind: WorkerPool\nmetadata: { name: ${name} }\nspec: { mode: Process, engineEnvironment: ["*"], allowHostNetwork: true }\n`,
  ],
  [
    'a Stack in another namespace',
    `apiVersion: oarlock.dev/v1alpha1\nkind: Stack\nmetadata: { name: ${name}, namespace: ${victimNamespace} }\nspec: { engine: command, suspend: true, source: { inline: { files: { a: "" } } }, command: { apply: ["true"] } }\n`,
  ],
  ['a Tenant', `apiVersion: oarlock.dev/v1alpha1\nkind: Tenant\nmetadata: { name: ${name} }\nspec: { namespaces: [${victimNamespace}] }\n`],
  [
    'the definition of Stacks',
    `apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: { name: stacks.oarlock.dev, labels: { owned: "yes" } }\nspec: { group: oarlock.dev, names: { kind: Stack, plural: stacks }, scope: Namespaced, versions: [] }\n`,
  ],
  [
    'an admission webhook',
    `apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\nmetadata: { name: ${name} }\nwebhooks: []\n`,
  ],
]

const rights: Attack = {
  name: 'manifests-of-rights',
  ...author,
  promise: 'Applied objects',
  slow: true,
  async attempt(target) {
    const name = target.newName('rights')
    const subject = '{ kind: ServiceAccount, name: author, namespace: attacker }'
    const gained: string[] = []
    for (const [what, manifest] of escalating(name, subject)) {
      const { run } = await target.runStack({ engine: 'manifests', source: { inline: { files: { 'a.yaml': manifest } } } })
      if (run?.status?.phase === 'Succeeded') gained.push(`applied ${what}`)
    }
    const secrets = await target.send('GET', `/api/v1/namespaces/${victimNamespace}/secrets`, { token: target.authorToken })
    return [...gained, ...target.secretsIn(secrets.text)]
  },
}

const tokenSecrets: Attack = {
  name: 'manifests-token-of-service-account',
  ...author,
  promise: 'Applied objects',
  async attempt(target) {
    const name = target.newName('token')
    const manifest = `apiVersion: v1\nkind: Secret\nmetadata: { name: ${name}, namespace: ${victimNamespace}, annotations: { kubernetes.io/service-account.name: default } }\ntype: kubernetes.io/service-account-token\n`
    await target.runStack({ engine: 'manifests', source: { inline: { files: { 'a.yaml': manifest } } } })
    const created = await target.admin.resource(secretResource).getOrUndefined(name, { namespace: victimNamespace })
    // The attacker cannot read it there, but a worker can.
    return created?.data?.token ? ['made the server issue a token of a ServiceAccount of another namespace'] : []
  },
}

export const referenceAttacks: readonly Attack[] = [fields, applied, rights, tokenSecrets]
