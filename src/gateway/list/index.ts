/**
 * @module gateway/list: lists over several partitions. Start reading at `merged-list.ts`, then `merge-lists.ts`, which is pure.
 * In: the parts of a list. Out: one list at one resource version with signed continue tokens, never a part of it.
 */

export { availableParts, partialParameter, partialWarning } from './available-parts.ts'
export { deleteMerged } from './delete-collection.ts'
export { readMergedList } from './merged-list.ts'
