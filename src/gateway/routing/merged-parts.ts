import { hash } from 'node:crypto'
import type { MergedPart } from './decide-route.ts'

/** The same for the same partitions, in any order. */
export const partsText = (parts: readonly MergedPart[]): string => JSON.stringify(parts.map(part => JSON.stringify(part)).sort())

/** As {@link partsText}, short enough for a token. */
export const partsKey = (parts: readonly MergedPart[]): string => hash('sha256', partsText(parts), 'base64url').slice(0, 16)
