import { HttpError } from '../../stores/http/index.ts'
import { base64Value, base64Values, toObject } from './json-fields.ts'
import { ok, type RouteRequest, type Routes } from './route-request.ts'
import { defineRoute } from './router.ts'

const stackPath = '/api/stacks/:organization/:project/:stack'

/** Secrets of configuration and state, encrypted by the backend's key of the stack. Values are base64 in JSON. */
export const secretRoutes: Routes = [
  defineRoute(`POST ${stackPath}/encrypt`, 'run', request =>
    request.withBody(async ({ value }) => {
      const [ciphertext] = await encrypt(request, [base64Value(toObject(value).plaintext, 'plaintext')])
      return ok({ ciphertext })
    }),
  ),
  defineRoute(`POST ${stackPath}/decrypt`, 'run', request =>
    request.withBody(async ({ value }) => {
      const [plaintext] = await decrypt(request, [base64Value(toObject(value).ciphertext, 'ciphertext')])
      return ok({ plaintext })
    }),
  ),
  defineRoute(`POST ${stackPath}/batch-encrypt`, 'run', request =>
    request.withBody(async ({ value }) =>
      ok({ ciphertexts: await encrypt(request, base64Values(toObject(value).plaintexts, 'plaintexts')) }),
    ),
  ),
  defineRoute(`POST ${stackPath}/batch-decrypt`, 'run', request =>
    request.withBody(async ({ value }) => {
      const ciphertexts = base64Values(toObject(value).ciphertexts, 'ciphertexts')
      const plaintexts = await decrypt(request, ciphertexts)
      return ok({ plaintexts: Object.fromEntries(ciphertexts.map((each, i) => [each.toString('base64'), plaintexts[i]])) })
    }),
  ),
  // Reports of the CLI that it has decrypted a secret of another provider.
  defineRoute(`POST ${stackPath}/decrypt/log-decryption`, 'run', request => request.withBody(async () => ok())),
  defineRoute(`POST ${stackPath}/decrypt/log-batch-decryption`, 'run', request => request.withBody(async () => ok())),
]

async function encrypt({ context, stack }: RouteRequest, plaintexts: Buffer[]): Promise<string[]> {
  return plaintexts.length === 0 ? [] : toBase64(await context.backend.encrypt(stack, plaintexts), plaintexts.length)
}

async function decrypt({ context, stack }: RouteRequest, ciphertexts: Buffer[]): Promise<string[]> {
  return ciphertexts.length === 0 ? [] : toBase64(await context.backend.decrypt(stack, ciphertexts), ciphertexts.length)
}

function toBase64(values: readonly Uint8Array[], expected: number): string[] {
  if (values.length !== expected) throw new HttpError(503, 'Unavailable', 'the backend returned another number of values')
  return values.map(each => Buffer.from(each.buffer, each.byteOffset, each.byteLength).toString('base64'))
}
