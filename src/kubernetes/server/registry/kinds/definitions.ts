import { column, creationTimestampText, nameColumn } from '../columns.ts'
import { checkCrd, crdFinalizer, crdSchema, prepareCrd } from '../crd-object.ts'
import type { Row } from './row.ts'

export const definitionKinds: readonly Row[] = [
  {
    group: 'apiextensions.k8s.io',
    kind: 'CustomResourceDefinition',
    plural: 'customresourcedefinitions',
    shortNames: ['crd', 'crds'],
    categories: ['api-extensions'],
    cluster: true,
    description:
      'CustomResourceDefinition represents a resource that should be exposed on the API server. Its name must be <plural>.<group>.',
    fields: crdSchema,
    required: ['spec'],
    blank: { spec: { names: {} }, metadata: { finalizers: [crdFinalizer] } },
    hasStatus: true,
    hasGeneration: true,
    columns: [nameColumn, { ...column('Created At', creationTimestampText, object => object.metadata.creationTimestamp), type: 'date' }],
    prepare: prepareCrd,
    check: checkCrd,
  },
]
