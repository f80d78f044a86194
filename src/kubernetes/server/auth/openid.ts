import type { ServiceAccountTokens } from './service-account-tokens.ts'

/** A document that lets others verify the tokens of service accounts (OpenID Connect Discovery 1.0, as in kube-apiserver). */
export type OpenIdDocument = { readonly contentType: string; readonly text: string }

/** @param url the URL of this server, such as `https://127.0.0.1:7466`. */
export function openIdDocument(path: string, { issuer, key }: ServiceAccountTokens, url: string): OpenIdDocument | undefined {
  switch (path) {
    case '/openid/v1/jwks':
      return { contentType: 'application/jwk-set+json', text: JSON.stringify(key.keySet) }
    case '/.well-known/openid-configuration':
      return {
        contentType: 'application/json',
        text: JSON.stringify({
          issuer,
          jwks_uri: `${url}/openid/v1/jwks`,
          response_types_supported: ['id_token'],
          subject_types_supported: ['public'],
          id_token_signing_alg_values_supported: ['ES256'],
        }),
      }
    default:
      return undefined
  }
}
