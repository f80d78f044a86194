import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { rolldown } from 'rolldown'

/** CEL is loaded when it is needed first, by a path that a bundle does not have. */
const lazyCel = /[/\\]kubernetes[/\\]schema[/\\]load-cel\.([jt]s)$/

/**
 * Bundles the entry point of an operator, with all that it imports, into one file. It finds `oarlock/controller` and other packages
 * where Node.js would: in `node_modules` of the operator. Threads of its own are not followed.
 */
export async function bundleOperator(entry: string, output: string): Promise<void> {
  if (!existsSync(entry)) throw new Error(`--operator is ${JSON.stringify(entry)}, which does not exist`)
  const bundling = await rolldown({
    input: resolve(entry),
    platform: 'node',
    logLevel: 'silent',
    plugins: [
      {
        name: 'cel',
        load: path => {
          const extension = lazyCel.exec(path)?.[1]
          return extension && `export const loadCel = () => require('../cel/index.${extension}')`
        },
      },
    ],
  })
  await bundling.write({ file: output, format: 'esm', codeSplitting: false, comments: { jsdoc: false } })
  await bundling.close()
}
