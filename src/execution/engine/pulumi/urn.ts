/** The root of every stack; its outputs are those of the stack. */
export const rootType = 'pulumi:pulumi:Stack'

/** `urn:pulumi:stack::project::parent$type::name`: the name may contain `::`. */
function partsOf(urn: string): readonly string[] {
  return urn.split('::')
}

/** Without the types of the parents. */
export const typeOf = (urn: string): string => (partsOf(urn)[2] ?? '').split('$').at(-1) ?? ''

export const nameOf = (urn: string): string => partsOf(urn).slice(3).join('::')

/** What a user has declared: not the stack itself, nor a provider. */
export const isCounted = (urn: string): boolean => {
  const type = typeOf(urn)
  return type !== rootType && !type.startsWith('pulumi:providers:')
}
