import type { Static } from 'typebox'
import { Type } from '../kubernetes/object/index.ts'

/** A relative path. It is an argument of the CLI, so it must not begin with "-". */
const pathPattern = '^[^-/\\x00-\\x1f][^\\x00-\\x1f]*$'
/** A name or a host pattern in an argument `--name=value`. */
const argumentPattern = '^[^\\x00-\\x1f]+$'
const namePattern = '^[A-Za-z_][A-Za-z0-9_.-]*$'

const path = (description: string) => Type.String({ minLength: 1, maxLength: 1024, pattern: pathPattern, description })
const texts = (description: string) =>
  Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 253, pattern: '^[^\\x00-\\x1f,]+$' }), { minItems: 1, maxItems: 64, description }),
  )
const variables = (description: string) => Type.Optional(Type.Record(Type.String(), Type.Unknown(), { description }))
const secretKey = (description: string, key?: string) =>
  Type.Object(
    {
      name: Type.String({ minLength: 1, description: 'Name of a Secret in the namespace of the Stack.' }),
      ...(key === undefined
        ? { key: Type.String({ minLength: 1, description: 'Key in the Secret.' }) }
        : { key: Type.Optional(Type.String({ default: key, minLength: 1, description: 'Key in the Secret.' })) }),
    },
    { description },
  )

const inventory = Type.Object(
  {
    text: Type.Optional(
      Type.String({ maxLength: 262_144, description: 'The inventory as text, in the INI or the YAML format of Ansible.' }),
    ),
    hosts: Type.Optional(
      Type.Record(Type.String({ maxLength: 253 }), Type.Record(Type.String(), Type.Unknown()), {
        description: 'Hosts by name, with their variables, such as {"web1": {"ansible_host": "192.0.2.1"}}.',
      }),
    ),
    groups: Type.Optional(
      Type.Record(
        Type.String({ maxLength: 253 }),
        Type.Object({
          hosts: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 253 }), { description: 'Names of hosts.' })),
          children: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 253 }), { description: 'Names of groups.' })),
          vars: variables('Variables of the group.'),
        }),
        { description: 'Groups by name.' },
      ),
    ),
    path: Type.Optional(path('A file or a directory of the source, relative to its directory.')),
    variable: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 253,
        description:
          'Name of a variable of the Stack that has the inventory, such as an output of another Stack (variablesFrom.stackRef): a list of host names, or an object in the YAML format of Ansible, such as {"web": {"hosts": {"web1": {}}}}.',
      }),
    ),
  },
  {
    description:
      'Hosts of the playbooks. Several of these fields together are one inventory; variables of later ones override: path, text, hosts and groups, variable. Default: none, where a playbook finds only localhost.',
  },
)

/** `spec.ansible` of a Stack. */
export const ansibleSchema = Type.Object(
  {
    playbooks: Type.Array(path('A playbook, relative to the directory of the source.'), {
      minItems: 1,
      maxItems: 16,
      description: 'Playbooks that an Apply runs, in this order.',
    }),
    destroyPlaybook: Type.Optional(path('Playbook that a Destroy runs. Default: a Destroy does nothing, and the log reports that.')),
    inventory: Type.Optional(inventory),
    tags: texts('Only plays and tasks with one of these tags.'),
    skipTags: texts('Plays and tasks with one of these tags are skipped.'),
    limit: Type.Optional(
      Type.String({ minLength: 1, maxLength: 1024, pattern: argumentPattern, description: 'Only hosts of this pattern.' }),
    ),
    forks: Type.Optional(Type.Integer({ minimum: 1, maximum: 256, description: 'Maximum number of hosts at the same time. Default: 5.' })),
    verbosity: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 4,
        default: 0,
        description: 'How much is logged, as -v to -vvvv. A higher value may log more secrets.',
      }),
    ),
    check: Type.Optional(
      Type.Boolean({
        default: true,
        description:
          'Plans with --check --diff. false: for playbooks that cannot run in check mode; then each plan has changes, also at each interval.',
      }),
    ),
    checkAfterApply: Type.Optional(
      Type.Boolean({
        default: false,
        description:
          'Runs --check again after each Apply; the message of the Run names tasks that would change something again, which are not idempotent.',
      }),
    ),
    user: Type.Optional(Type.String({ minLength: 1, maxLength: 253, pattern: namePattern, description: 'User on the hosts.' })),
    become: Type.Optional(
      Type.Object(
        {
          enabled: Type.Optional(
            Type.Boolean({ default: false, description: 'Every task uses become. Default: only tasks and plays that set it.' }),
          ),
          user: Type.Optional(Type.String({ minLength: 1, maxLength: 253, pattern: namePattern, description: 'Default: root.' })),
          method: Type.Optional(Type.String({ minLength: 1, maxLength: 253, pattern: namePattern, description: 'Default: sudo.' })),
          passwordSecretRef: Type.Optional(secretKey('Password for become.')),
        },
        { description: 'Another user on the hosts.' },
      ),
    ),
    vaultPasswords: Type.Optional(
      Type.Array(
        Type.Object({
          id: Type.String({
            maxLength: 63,
            pattern: '^[A-Za-z0-9_][A-Za-z0-9_-]*$',
            description: 'Vault ID; "default" for files without one.',
          }),
          secretKeyRef: secretKey('Password of the vault.'),
        }),
        {
          maxItems: 16,
          description: 'Passwords for what ansible-vault has encrypted in the source.',
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['id'],
        },
      ),
    ),
    privateKeySecretRef: Type.Optional(secretKey('Private key for SSH, without a passphrase.', 'ssh-privatekey')),
    hostKeyChecking: Type.Optional(
      Type.Boolean({ default: true, description: 'Connects only to hosts whose key is in knownHosts. false: to any host that answers.' }),
    ),
    knownHosts: Type.Optional(
      Type.String({ maxLength: 262_144, description: 'Keys of the hosts, in the format of known_hosts, as "ssh-keyscan" prints them.' }),
    ),
    requirements: Type.Optional(
      path(
        'File with collections and roles, relative to the directory of the source. Each has an exact version; what it requires itself is listed too. Default: requirements.yml, if there is one.',
      ),
    ),
    installEnvironment: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 253, pattern: '^[A-Za-z_][A-Za-z0-9_]*$' }), {
        maxItems: 64,
        description:
          'Names of variables with credentials that the installation of collections and roles gets too. Without it, values from Secrets and from the engineEnvironment of the pool reach only the playbooks.',
      }),
    ),
    callbacks: texts('Further callback plugins that are enabled, such as one in callback_plugins next to the playbook.'),
    approvalBinding: Type.Optional(
      Type.Enum(['Plan', 'Inputs'], {
        default: 'Plan',
        description:
          'What an approval covers. Plan: exactly what was planned, which Ansible cannot do, so with approval Manual each Run fails (ApprovalNotBound). Inputs: the source, the settings, the inventory and the variables that were planned.',
      }),
    ),
  },
  { description: 'Options of engine ansible, which requires them.' },
)

export type AnsibleOptions = Static<typeof ansibleSchema>

/** A key of a Secret that `spec.ansible` names, with the path of the field in the spec. */
export type AnsibleSecret = { readonly field: string; readonly name: string; readonly key: string }

/** Every key of a Secret that the options name. */
export function ansibleSecrets(options: AnsibleOptions | undefined): AnsibleSecret[] {
  const { become, privateKeySecretRef: privateKey, vaultPasswords = [] } = options ?? {}
  const found: AnsibleSecret[] = []
  if (become?.passwordSecretRef) found.push({ field: 'spec.ansible.become.passwordSecretRef', ...become.passwordSecretRef })
  if (privateKey) found.push({ field: 'spec.ansible.privateKeySecretRef', name: privateKey.name, key: privateKey.key ?? 'ssh-privatekey' })
  for (const { id, secretKeyRef } of vaultPasswords)
    found.push({ field: `spec.ansible.vaultPasswords[${id}].secretKeyRef`, ...secretKeyRef })
  return found
}
