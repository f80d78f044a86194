import { compileGoRegexp, type GoRegexp, goRegexpError } from '../../object/go-regexp.ts'
import { ArrayListValue, CelError, type Value } from '../values.ts'
import { asInt, asString, type FunctionTable } from './implementation.ts'

/** Regular expressions in Go's syntax, in linear time. */
export const regexes: FunctionTable = {
  matches: (text, pattern) => compile(pattern!).test(asString(text)),
  find: (text, pattern) => compile(pattern!).findAll(asString(text), 1)[0] ?? '',
  findAll: (text, pattern, limit) => {
    const most = limit === undefined ? -1n : asInt(limit)
    return new ArrayListValue(compile(pattern!).findAll(asString(text), most < 0n ? Number.POSITIVE_INFINITY : Number(most)))
  },
}

function compile(pattern: Value): GoRegexp {
  const source = asString(pattern)
  const expression = compileGoRegexp(source)
  if (!expression) throw new CelError(goRegexpError(source) ?? 'error parsing regexp')
  return expression
}
