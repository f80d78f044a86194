import { crdFinalizer, crdSchema, prepareCrd, validateCrd } from '../crd/index.ts'
import { column, creationTimestampText, nameColumn } from '../printer-columns.ts'
import type { KindDeclaration } from './kind-declaration.ts'

export const definitionKinds: readonly KindDeclaration[] = [
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
    zeroValue: { spec: { names: {} }, metadata: { finalizers: [crdFinalizer] } },
    hasStatus: true,
    hasGeneration: true,
    columns: [nameColumn, { ...column('Created At', creationTimestampText, object => object.metadata.creationTimestamp), type: 'date' }],
    prepareForWrite: prepareCrd,
    validate: validateCrd,
  },
]
