import { createRequire } from 'node:module'
import { moduleExtension } from '../util/index.ts'

// In a bundle, scripts/bundle.mjs replaces this module by one whose `require` the bundler resolves.

/** Loads CEL synchronously. The module is the same one that an import would give. */
export function loadCel(): typeof import('../cel/index.ts') {
  return createRequire(import.meta.url)(`../cel/index${moduleExtension}`) as typeof import('../cel/index.ts')
}
