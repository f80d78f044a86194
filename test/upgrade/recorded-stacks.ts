import type { StackSpec } from '../../src/api/index.ts'

/** Appends a line to the file that the environment variable LEDGER_FILE of `oarlock up` names. */
const record = (what: string) => `echo ${what} >> "$LEDGER_FILE"`

const subnets = `resource "terraform_data" "subnet" {
  for_each = toset(["a", "b"])
  input    = each.key
  provisioner "local-exec" {
    command = <<-SH
      ${record(`create subnet-\${each.key}`)}
    SH
  }
}
output "subnets" {
  value = [for subnet in terraform_data.subnet : subnet.output]
}
output "token" {
  value     = "sensitive-token"
  sensitive = true
}
`

const queue = `resource "terraform_data" "queue" {
  provisioner "local-exec" {
    command = <<-SH
      ${record('create queue')}
    SH
  }
}
`

/**
 * The Stacks of namespace `team` in a recorded data directory. They use no field that the oldest recording does not know. `waiting` awaits approval, the others
 * are Ready. Whatever creates something appends a line to the ledger.
 */
export const recordedStacks: Record<string, StackSpec> = {
  network: { engine: 'opentofu', source: { inline: { files: { 'main.tf': subnets } } } },
  dependent: {
    engine: 'command',
    source: { inline: { files: { 'apply.sh': record('create dependent') } } },
    command: {
      plan: ['sh', '-c', 'test -s "$OARLOCK_STATE" || exit 2'],
      apply: ['sh', '-c', `${record('create dependent')}; echo '{"made": true}' > "$OARLOCK_STATE"; echo "subnets $OARLOCK_VAR_subnets"`],
    },
    variablesFrom: [{ stackRef: { name: 'network' } }],
    env: [{ name: 'PASSWORD', secretKeyRef: { name: 'password', key: 'value' } }],
  },
  objects: {
    engine: 'manifests',
    source: { inline: { files: { 'map.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: made }\ndata: { by: objects }\n' } } },
  },
  waiting: { engine: 'opentofu', source: { inline: { files: { 'main.tf': queue } } }, approval: 'Manual' },
}
