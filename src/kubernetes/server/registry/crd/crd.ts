import type { Condition, KubeObject, StructuralSchema } from '../../../object/index.ts'

export type CrdNames = { plural: string; singular?: string; kind: string; listKind?: string; shortNames?: string[]; categories?: string[] }

export type CrdColumn = { name: string; type: string; jsonPath: string; format?: string; description?: string; priority?: number }

/** Paths of fields, each with a leading dot. */
export type CrdScale = { specReplicasPath: string; statusReplicasPath: string; labelSelectorPath?: string }

export type CrdVersion = {
  name: string
  served: boolean
  storage: boolean
  deprecated?: boolean
  deprecationWarning?: string
  schema?: { openAPIV3Schema?: StructuralSchema }
  subresources?: { status?: object; scale?: CrdScale }
  additionalPrinterColumns?: CrdColumn[]
  selectableFields?: { jsonPath: string }[]
}

export type CrdBody = {
  spec: {
    group: string
    scope: 'Namespaced' | 'Cluster'
    names: CrdNames
    versions: CrdVersion[]
    conversion?: { strategy: string }
    preserveUnknownFields?: boolean
  }
  status?: { conditions?: Condition[]; acceptedNames?: CrdNames; storedVersions?: string[] }
}

export type Crd = KubeObject<CrdBody>
