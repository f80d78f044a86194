import type * as typebox from 'typebox'

type Options = Record<string, unknown>
type Declaration = Record<string, unknown>

/** TypeBox marks optional properties with this key, and its types rely on it. */
const optional = '~optional'

/**
 * The part of TypeBox that declares our kinds, typed by TypeBox. The types come from the library; at run time a
 * declaration is plain JSON Schema, which these functions create.
 * Why not the library's own functions: it has 709 modules, which cost every process, workers included, 24 MB of RSS and
 * 60 to 170 ms of start-up (measured on Node 26), for the twelve lines below. `declare.test.ts` compares both.
 */
export const Type = {
  String: (options?: Options) => ({ type: 'string', ...options }),
  Integer: (options?: Options) => ({ type: 'integer', ...options }),
  Number: (options?: Options) => ({ type: 'number', ...options }),
  Boolean: (options?: Options) => ({ type: 'boolean', ...options }),
  Unknown: (options?: Options) => ({ ...options }),
  Enum: (values: unknown[], options?: Options) => ({ enum: values, ...options }),
  Array: (items: Declaration, options?: Options) => ({ type: 'array', items, ...options }),
  Record: (_key: Declaration, value: Declaration, options?: Options) => ({
    type: 'object',
    patternProperties: { '^.*$': value },
    ...options,
  }),
  Optional: (declaration: Declaration) => ({ ...declaration, [optional]: true }),
  Object: (properties: Record<string, Declaration>, options?: Options) => {
    const required = Object.keys(properties).filter(name => properties[name]?.[optional] !== true)
    return { type: 'object', ...(required.length > 0 && { required }), properties, ...options }
  },
} as unknown as Pick<
  typeof typebox.Type,
  'String' | 'Integer' | 'Number' | 'Boolean' | 'Unknown' | 'Enum' | 'Array' | 'Record' | 'Optional' | 'Object'
>
