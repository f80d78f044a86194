import { dirname } from 'node:path'
import { sourceDirectory } from '../kubernetes/util/index.ts'

/** The checkout, or the directory of the installed package: it holds package.json, `bin/` and `examples/`. */
export const packageRoot = dirname(sourceDirectory)
