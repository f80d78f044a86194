import { typeOf } from '../../../stores/pulumi/index.ts'

export { nameOf, typeOf } from '../../../stores/pulumi/index.ts'

/** The root of every stack; its outputs are those of the stack. */
export const rootType = 'pulumi:pulumi:Stack'

/** What a user has declared: not the stack itself, nor a provider. */
export const isCounted = (urn: string): boolean => {
  const type = typeOf(urn)
  return type !== rootType && !type.startsWith('pulumi:providers:')
}
