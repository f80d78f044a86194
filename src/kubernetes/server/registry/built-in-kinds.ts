import type { KubeObject, StructuralSchema } from '../../object/index.ts'
import { applyDefaults } from '../../schema/index.ts'
import { allVerbs, type Kind, storageNameOf } from './kind.ts'
import { bindingDeclaration, type KindDeclaration, kindDeclarations, stringField, tokenRequestDeclaration } from './kinds/index.ts'
import type { ObjectReader } from './object-reader.ts'
import { ageColumn, nameColumn } from './printer-columns.ts'
import { definition, goForm, type TypeSchema, typeSchema } from './schemas/index.ts'
import type { Strategy } from './strategy.ts'
import { fillDefaults, ruleErrors } from './type-rules/index.ts'

/** Compiles the kinds that are served without a CustomResourceDefinition. */
export function builtInKinds(reader: ObjectReader): Kind[] {
  return kindDeclarations.map(declaration =>
    declaration.typeName ? typedKind(declaration, declaration.typeName, reader) : schemaKind(declaration, reader),
  )
}

/** What does not depend on whether the kind has a Kubernetes type or declares its own fields. */
function commonFields(declaration: KindDeclaration) {
  const { group = '', version = 'v1', kind, plural } = declaration
  return {
    group,
    version,
    apiVersion: group ? `${group}/${version}` : version,
    kind,
    listKind: `${kind}List`,
    plural,
    singular: kind.toLowerCase(),
    shortNames: declaration.shortNames ?? [],
    categories: declaration.categories ?? [],
    namespaced: !declaration.cluster,
    verbs: declaration.verbs ?? allVerbs,
    isCustom: false,
    isVirtual: declaration.isVirtual,
    deprecationWarning: declaration.deprecationWarning,
    nameRule: declaration.nameRule ?? 'dns1123Subdomain',
    hasGeneration: declaration.hasGeneration ?? false,
    hasStatus: declaration.hasStatus ?? false,
    scale: declaration.scale,
    storageName: declaration.storageName ?? storageNameOf(group, plural),
    fromStorage: declaration.fromStorage,
    toStorage: declaration.toStorage,
    columns: declaration.columns ?? [nameColumn, ageColumn],
    selectableFields: declaration.selectableFields ?? [],
  } satisfies Partial<Kind>
}

function commonStrategy(declaration: KindDeclaration, reader: ObjectReader) {
  const { prepareForWrite, prepareForCreate, validateAdmission } = declaration
  return {
    prepareForWrite: prepareForWrite && ((object, oldObject) => prepareForWrite(object, oldObject, reader)),
    prepareForCreate: prepareForCreate && (object => prepareForCreate(object, reader)),
    validateStatusUpdate: declaration.validateStatusUpdate,
    validateAdmission: validateAdmission && ((object, oldObject) => validateAdmission(object, oldObject, reader)),
    warnings: declaration.warnings,
    incrementsGeneration: declaration.incrementsGeneration,
    isRenewal: declaration.isRenewal,
    allowCreateOnUpdate: declaration.allowCreateOnUpdate,
    validateDelete: declaration.validateDelete,
    gracePeriodSeconds: declaration.gracePeriodSeconds,
    orphanByDefaultWarning: declaration.orphanByDefaultWarning,
    returnDeletedObject: declaration.returnDeletedObject,
  } satisfies Strategy
}

/** A kind with a Kubernetes type. The type's schema is not read before the kind is used. */
function typedKind(declaration: KindDeclaration, typeName: string, reader: ObjectReader): Kind {
  const common = commonFields(declaration)
  const { validate } = declaration
  const validateKind: Strategy['validate'] = validate && ((object, oldObject) => validate(object, oldObject, reader))
  let schema: TypeSchema | undefined
  let zeroValue: Strategy['zeroValue']
  const root = (): TypeSchema => {
    schema ??= withOpenMetadata(typeSchema(typeName))
    return schema
  }
  return {
    ...common,
    typeName,
    get schema() {
      return root() as StructuralSchema
    },
    get description() {
      return definition(typeName).description ?? ''
    },
    strategy: {
      ...commonStrategy(declaration, reader),
      get zeroValue() {
        zeroValue ??= { ...(goForm(root(), {}, common) as object), ...declaration.zeroValue }
        return zeroValue
      },
      default: object => fillDefaults(root(), goForm(root(), object, common)) as KubeObject,
      validate: (object, oldObject) => {
        const causes = ruleErrors(root(), object, oldObject)
        return validateKind ? [...causes, ...validateKind(object, oldObject)] : causes
      },
      // The rules of types do not apply to statuses, which are written most often.
      validateStatusUpdate: declaration.validateStatusUpdate ?? validateKind ?? noCauses,
    },
  }
}

function noCauses(): [] {
  return []
}

/** A kind that declares its own fields. */
function schemaKind(declaration: KindDeclaration, reader: ObjectReader): Kind {
  const { validate } = declaration
  const schema: StructuralSchema = {
    type: 'object',
    description: declaration.description,
    ...(declaration.required && { required: declaration.required }),
    properties: {
      apiVersion: stringField('APIVersion defines the versioned schema of this representation of an object.'),
      kind: stringField('Kind is a string value representing the REST resource this object represents.'),
      metadata: openMetadata,
      ...declaration.fields,
    },
  }
  return {
    ...commonFields(declaration),
    schema,
    description: declaration.description ?? '',
    strategy: {
      ...commonStrategy(declaration, reader),
      zeroValue: { ...(applyDefaults(schema, {}) as object), ...declaration.zeroValue },
      validate: validate && ((object, oldObject) => validate(object, oldObject, reader)),
    },
  }
}

/** `rest/` validates metadata field by field, which is faster and produces the same errors as Kubernetes. */
const openMetadata: StructuralSchema & TypeSchema = { type: 'object' }

function withOpenMetadata(schema: TypeSchema): TypeSchema {
  const { properties, zeros } = schema
  return { ...schema, properties: { ...properties, metadata: openMetadata }, zeros: zeros?.filter(([field]) => field !== 'metadata') }
}

/** The kind of the request body of the `token` subresource of a ServiceAccount. */
export const tokenRequestKind: Kind = bodyKind(tokenRequestDeclaration)

/** The kind of the request body of the `binding` subresource of a Pod. */
export const bindingKind: Kind = bodyKind(bindingDeclaration)

/** A kind that is sent and never stored. */
function bodyKind(declaration: KindDeclaration & { typeName: string }): Kind {
  return typedKind(declaration, declaration.typeName, { get: () => undefined, all: () => [], inNamespace: () => [] })
}
