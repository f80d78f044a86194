/**
 * @module registry: the kinds that are served, with their schemas and strategies. Start reading at `kind.ts`, then `strategy.ts`.
 * In: the declarations of the built-in kinds, CustomResourceDefinitions. Out: `Kind`s by group, version and plural.
 * Out of scope: reading and writing objects (rest/), publishing kinds to clients (discovery/).
 */
export { type Amounts, addAmounts, amountsOf, forbiddenError, podLimits, podRequests } from './admission/index.ts'
export { bindingKind, tokenRequestKind } from './built-in-kinds.ts'
export { type Crd, crdFinalizer, markTerminating } from './crd/index.ts'
export { humanDuration } from './human-duration.ts'
export { allVerbs, type Kind, type KindNames, storageNameOf, type Verb } from './kind.ts'
export { kubernetesServiceIp, systemPriorityClasses } from './kinds/index.ts'
export type { PrinterColumn, SelectableField } from './printer-columns.ts'
export { Registry } from './registry.ts'
export { type ScaleFields, scaleKindFor, valueAt } from './scale.ts'
export { publishedSchemas } from './schemas/index.ts'
export { type EntrySelection, select, selectAt, selectedFieldsOf, selectFrom } from './selection.ts'
export type { Strategy } from './strategy.ts'
export { type Subresource, subresourcesOf } from './subresources.ts'
export { type Fields, fieldsOf, itemsOf, textOf, textsOf } from './type-rules/index.ts'
