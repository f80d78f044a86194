const delimiter = '::'

/** `qualifiedType` has the types of the parents, `parent$type`. All are empty for what is no URN. */
export type Urn = { readonly stack: string; readonly project: string; readonly qualifiedType: string; readonly name: string }

/** Parses `urn:pulumi:<stack>::<project>::<qualified type>::<name>`; the name may contain `::`. */
export function parseUrn(urn: string): Urn {
  const prefix = 'urn:pulumi:'
  if (!urn.startsWith(prefix)) return { stack: '', project: '', qualifiedType: '', name: '' }
  const [stack = '', project = '', qualifiedType = '', ...name] = urn.slice(prefix.length).split(delimiter)
  return { stack, project, qualifiedType, name: name.join(delimiter) }
}

export const formatUrn = ({ stack, project, qualifiedType, name }: Urn): string =>
  ['urn:pulumi:'.concat(stack), project, qualifiedType, name].join(delimiter)

/** Without the types of the parents. */
export const typeOf = (urn: string): string => parseUrn(urn).qualifiedType.split('$').at(-1) ?? ''

export const nameOf = (urn: string): string => parseUrn(urn).name
