/** The kind of the provider. `spec.forProvider` has the options of engine ansible (docs/ansible.md) and some of every Stack. */
import { ansibleSchema, stackSpecSchema } from '../../../src/api/index.ts'
import { managedColumns, managedSpec, managedStatus } from '../../../src/controllers/managed/index.ts'
import { defineResource, type Resource, Type } from '../../../src/kubernetes/index.ts'

const { source, variables, variablesFrom, env, approval, drift, interval, timeout, retry, pool, isolation } = stackSpecSchema.properties
const { inline, git, interval: sourceInterval } = source.properties

export const ansibleRunResource = defineResource({
  ...{ group: 'ansible.oarlock.dev', version: 'v1alpha1', kind: 'AnsibleRun', plural: 'ansibleruns', scope: 'Namespaced' },
  description: 'Playbooks that are applied to hosts, checked for drift, and followed by another playbook when the object is deleted.',
  shortNames: ['arun'],
  spec: managedSpec(
    Type.Object({
      // A path of the machine of a worker is nothing that an object may name.
      source: Type.Object(
        { inline, git, interval: sourceInterval },
        { description: 'Where the playbooks are. Exactly one of inline and git.' },
      ),
      ...ansibleSchema.properties,
      ...{ variables, variablesFrom, env, approval, drift, interval, timeout, retry, pool, isolation },
    }),
  ),
  status: managedStatus(
    Type.Object({
      outputs: Type.Optional(
        Type.Record(Type.String(), Type.Unknown(), {
          description: 'What the playbooks have set with set_stats, without sensitive values.',
        }),
      ),
      hosts: Type.Optional(Type.Integer({ description: 'Number of hosts of the last Apply.' })),
    }),
  ),
  printerColumns: [
    ...managedColumns.slice(0, 2),
    { name: 'Reason', jsonPath: '.status.conditions[?(@.type=="Ready")].reason' },
    { name: 'Phase', jsonPath: '.status.run.phase' },
    { name: 'Task', jsonPath: '.status.run.progress.current' },
    { name: 'Run', jsonPath: '.status.run.name' },
  ],
})

export const kinds = [ansibleRunResource] as const

export type AnsibleRunBody = typeof ansibleRunResource extends Resource<infer Body> ? Body : never
