import { equalJson, invalidValue, nameErrors, requiredValue } from '../../../object/index.ts'
import { ageColumn, column, nameColumn } from '../printer-columns.ts'
import { textAt } from './column-values.ts'
import type { KindDeclaration } from './kind-declaration.ts'

/** How the container runtime of a node runs a Pod. A kubelet watches them. */
export const runtimeClassKinds: readonly KindDeclaration[] = [
  {
    group: 'node.k8s.io',
    kind: 'RuntimeClass',
    plural: 'runtimeclasses',
    cluster: true,
    typeName: 'io.k8s.api.node.v1.RuntimeClass',
    columns: [nameColumn, column('Handler', '', object => textAt(object, 'handler', '')), ageColumn],
    validate: ({ handler }, oldObject) => {
      const name = String(handler ?? '')
      const causes =
        name === '' ? [requiredValue('handler')] : nameErrors(name, 'dns1123Label').map(reason => invalidValue('handler', name, reason))
      if (oldObject && !equalJson(handler, oldObject.handler)) causes.push(invalidValue('handler', handler, 'field is immutable'))
      return causes
    },
  },
]
