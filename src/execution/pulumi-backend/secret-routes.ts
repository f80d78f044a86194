import { HttpError } from '../../stores/http/index.ts'
import { type Exchange, ok, type Routes } from './exchange.ts'
import { base64Value, base64Values, toObject } from './json-fields.ts'
import { defineRoute } from './router.ts'

const stackPath = '/api/stacks/:organization/:project/:stack'

/** Secrets of configuration and state, encrypted by the backend's key of the stack. Values are base64 in JSON. */
export const secretRoutes: Routes = [
  defineRoute(`POST ${stackPath}/encrypt`, 'run', exchange =>
    exchange.withBody(async ({ value }) => {
      const [ciphertext] = await encrypt(exchange, [base64Value(toObject(value).plaintext, 'plaintext')])
      return ok({ ciphertext })
    }),
  ),
  defineRoute(`POST ${stackPath}/decrypt`, 'run', exchange =>
    exchange.withBody(async ({ value }) => {
      const [plaintext] = await decrypt(exchange, [base64Value(toObject(value).ciphertext, 'ciphertext')])
      return ok({ plaintext })
    }),
  ),
  defineRoute(`POST ${stackPath}/batch-encrypt`, 'run', exchange =>
    exchange.withBody(async ({ value }) =>
      ok({ ciphertexts: await encrypt(exchange, base64Values(toObject(value).plaintexts, 'plaintexts')) }),
    ),
  ),
  defineRoute(`POST ${stackPath}/batch-decrypt`, 'run', exchange =>
    exchange.withBody(async ({ value }) => {
      const ciphertexts = base64Values(toObject(value).ciphertexts, 'ciphertexts')
      const plaintexts = await decrypt(exchange, ciphertexts)
      return ok({ plaintexts: Object.fromEntries(ciphertexts.map((each, i) => [each.toString('base64'), plaintexts[i]])) })
    }),
  ),
  // Reports of the CLI that it has decrypted a secret of another provider.
  defineRoute(`POST ${stackPath}/decrypt/log-decryption`, 'run', exchange => exchange.withBody(async () => ok())),
  defineRoute(`POST ${stackPath}/decrypt/log-batch-decryption`, 'run', exchange => exchange.withBody(async () => ok())),
]

async function encrypt({ context, stack }: Exchange, plaintexts: Buffer[]): Promise<string[]> {
  return plaintexts.length === 0 ? [] : toBase64(await context.backend.encrypt(stack, plaintexts), plaintexts.length)
}

async function decrypt({ context, stack }: Exchange, ciphertexts: Buffer[]): Promise<string[]> {
  return ciphertexts.length === 0 ? [] : toBase64(await context.backend.decrypt(stack, ciphertexts), ciphertexts.length)
}

function toBase64(values: readonly Uint8Array[], expected: number): string[] {
  if (values.length !== expected) throw new HttpError(503, 'Unavailable', 'the backend returned another number of values')
  return values.map(each => Buffer.from(each.buffer, each.byteOffset, each.byteLength).toString('base64'))
}
