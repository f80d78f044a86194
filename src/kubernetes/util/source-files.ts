import { dirname } from 'node:path'

// In a bundle, scripts/bundle.mjs replaces this module by one that exports the same two values for the location of the bundle.

/** The directory that holds `kubernetes/`, `cli/` and so on as separate files: `src` in a checkout, `dist` in the package. */
export const sourceDirectory: string = dirname(dirname(import.meta.dirname))
/** Of the modules in there: `.ts` in a checkout, `.js` in the package. */
export const moduleExtension: string = import.meta.url.endsWith('.ts') ? '.ts' : '.js'
